package alerts

import (
	"context"
	"fmt"
	"time"
)

// certificates finds those that end soon, and those that an ACME server does not give.
func (p *Parts) certificates(_ context.Context, rules map[string]Rule, now time.Time) (found []Finding, err error) {
	soon := now.Add(time.Duration(rules[CertificateEnds].Threshold * 24 * float64(time.Hour)))
	ends := func(name, mend string, at time.Time) {
		if at.Before(soon) {
			found = append(found, Finding{Rule: CertificateEnds, Subject: name, Name: name, Text: "The certificate ends at " + at.UTC().Format(time.RFC3339) + ".", Mend: mend})
		}
	}
	for _, c := range p.Certificates() {
		mend := "sudo cupola domain-certificate set " + quoted(c.Name) + " CERT KEY"
		if c.File {
			mend = "replace the files of serve --tls-cert and --tls-key"
		}
		ends(c.Name, mend, c.Ends)
	}
	failures, err := p.ACMEFailures()
	if err != nil {
		return nil, err
	}
	for _, f := range failures {
		if !f.Until.IsZero() {
			ends(f.Name, acmeMend, f.Until)
		}
		found = append(found, Finding{Rule: CertificateFails, Subject: f.Name, Name: f.Name, Mend: acmeMend,
			Text: fmt.Sprintf("The ACME server gave no certificate at %s: %s", f.At.UTC().Format(time.RFC3339), f.Error)})
	}
	return found, nil
}

const acmeMend = "check DNS records and firewalls: the ACME server must reach this machine by the name, at the ports 80 and 443"
