package alerts

import (
	"context"
	"slices"
	"time"

	"cupola/store/cf"
)

// The doctor's checks take seconds and start a container: they run a while after the
// start, and then rarely.
const (
	doctorDelay    = 10 * time.Minute
	doctorInterval = 6 * time.Hour
)

// ownRule are the checks that have a rule here which looks more often, and that of
// the targets of alerts.
var ownRule = []string{"disk", "memory", "backups", "certificates", "alerts"}

// doctorSource keeps what doctor found last.
type doctorSource struct {
	*Parts
	at    time.Time // zero: not yet
	found []Finding
}

func (s *doctorSource) find(ctx context.Context, _ map[string]Rule, now time.Time) ([]Finding, error) {
	if now.Sub(s.Started) < doctorDelay {
		return nil, errUnknown
	}
	if !s.at.IsZero() && now.Sub(s.at) < doctorInterval {
		return s.found, nil
	}
	results, err := s.Checks(ctx)
	if err != nil {
		return nil, err
	}
	s.at, s.found = now, nil
	for _, r := range results {
		f := Finding{Rule: DoctorWarns, Subject: r.Name, Name: r.Name, Text: r.Detail, Mend: r.Fix, Severity: cf.AlertInfo}
		if r.Level == "fail" {
			f.Rule, f.Severity = DoctorFails, cf.AlertCritical
		}
		if r.Level != "ok" && !slices.Contains(ownRule, r.Name) {
			s.found = append(s.found, f)
		}
	}
	return s.found, nil
}
