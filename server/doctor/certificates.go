package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"cupola/server/acme"
)

// certificates reports the names for which the daemon got no certificate from its ACME
// server.
func (m *machine) certificates(context.Context) Result {
	failures, err := acme.ReadFailures(filepath.Join(m.DataDir, acme.StatusFile))
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fine("not checked: requires root")
	case err != nil:
		return failed(err, "ls -l "+filepath.Join(m.DataDir, acme.StatusFile))
	case len(failures) == 0:
		return fine("no certificate is missing")
	}
	return judgeCertificates(failures, m.now)
}

func judgeCertificates(failures []acme.Failure, now time.Time) Result {
	const fix = "sudo journalctl -u cupola | grep ACME   # the ACME server must reach this machine by each name, at the ports 80 and 443: check DNS records and firewalls"
	f := failures[0]
	text := fmt.Sprintf("no certificate by ACME for %s: %s (%s ago)", f.Name, f.Error, now.Sub(f.At).Round(time.Second))
	if n := len(failures) - 1; n > 0 {
		text += fmt.Sprintf("; and for %d more names", n)
	}
	if !f.Until.IsZero() {
		text += "; the one of before is valid until " + f.Until.UTC().Format(time.RFC3339)
	}
	return warning(text, fix)
}
