package alerts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/server/acme"
	"cupola/server/certs"
	"cupola/server/drain"
	"cupola/server/machine"
	"cupola/store"
	"cupola/store/cf"
)

// Parts are the parts of the daemon that know what is wrong.
type Parts struct {
	Store        *store.Store
	Machine      func(context.Context) machine.State
	Checks       func(context.Context) ([]machine.Check, error) // what doctor finds; it takes seconds
	Cells        func() []lrp.CellUse
	WhyCrashed   func(*cf.Process) func(*lrp.Actual) string // in one line
	Drains       func() []drain.Failure
	Certificates func() []certs.Expiry // that the daemon does not renew
	ACMEFailures func() ([]acme.Failure, error)
	Backups      func() []BackupFailure // away from the machine
	BackupLags   func() []BackupLag     // of what changed since
	Started      time.Time
}

// source finds what some rules look for.
type source struct {
	rules []string
	find  func(ctx context.Context, rules map[string]Rule, now time.Time) ([]Finding, error)
}

// errUnknown says that a source does not know yet.
var errUnknown = errors.New("not known yet")

// sources are all sources, which keep what they remember between looks.
func (p *Parts) sources() []source {
	apps, doctor := &appSource{Parts: p, said: map[string]saying{}}, &doctorSource{Parts: p}
	return []source{
		{[]string{AppCrashing, AppUnhealthy, AppUnplaced}, apps.find},
		{[]string{DiskShort, MemoryShort, Overloaded, DatabaseBackup}, p.machine},
		{[]string{CellAbsent}, p.cells},
		{[]string{CertificateEnds, CertificateFails}, p.certificates},
		{[]string{OffsiteBackup}, p.backups},
		{[]string{OffsiteChanges}, p.backupLags},
		{[]string{ServiceBackup}, p.serviceBackups},
		{[]string{DrainFails}, p.drains},
		{[]string{TargetFails}, p.targets},
		{[]string{DoctorFails, DoctorWarns}, doctor.find},
	}
}

// gather asks all sources. The rules of one that fails are unknown.
func gather(ctx context.Context, all []source, rules []Rule, now time.Time) (found []Finding, unknown map[string]bool, err error) {
	byName := map[string]Rule{}
	for _, r := range rules {
		byName[r.Name] = r
	}
	unknown = map[string]bool{}
	var errs []error
	for _, s := range all {
		var some []Finding
		err := fault.Guard("alerts", func() (err error) {
			some, err = s.find(ctx, byName, now)
			return err
		})
		if err != nil {
			for _, name := range s.rules {
				unknown[name] = true
			}
			if !errors.Is(err, errUnknown) {
				errs = append(errs, fmt.Errorf("%s: %w", s.rules[0], err))
			}
			continue
		}
		found = append(found, some...)
	}
	return found, unknown, errors.Join(errs...)
}

func (p *Parts) cells(context.Context, map[string]Rule, time.Time) (found []Finding, err error) {
	for _, c := range p.Cells() {
		text := "Requests do not reach what runs on the cell."
		switch {
		case c.Unreachable:
			text = "The cell does not answer: what ran on it may go on, and nothing new is placed on it."
		case c.Problem == "":
			continue
		}
		found = append(found, Finding{Rule: CellAbsent, Subject: c.ID, Name: c.ID, Text: text, Mend: "cupola cells"})
	}
	return found, nil
}

func (p *Parts) drains(ctx context.Context, _ map[string]Rule, _ time.Time) (found []Finding, err error) {
	failing := p.Drains()
	if len(failing) == 0 {
		return nil, nil
	}
	var guids []string
	for _, f := range failing {
		guids = append(guids, f.AppGUID)
	}
	var names map[string]store.AppName
	if err := p.Store.Read(ctx, func(tx *store.Tx) (err error) {
		names, err = tx.AppNames(guids)
		return err
	}); err != nil {
		return nil, err
	}
	for _, f := range failing {
		if name, is := names[f.AppGUID]; is {
			found = append(found, Finding{Rule: DrainFails, Subject: f.AppGUID + " " + f.URL, Name: name.String() + " " + f.URL,
				Text: fmt.Sprintf("The syslog drain takes no logs since %s: %s", f.Since.UTC().Format(time.RFC3339), f.Error)})
		}
	}
	return found, nil
}

func (p *Parts) targets(ctx context.Context, _ map[string]Rule, _ time.Time) (found []Finding, err error) {
	var all []*cf.AlertTarget
	if err := p.Store.Read(ctx, func(tx *store.Tx) (err error) { all, err = store.AlertTargets.All(tx); return err }); err != nil {
		return nil, err
	}
	for _, t := range all {
		if !t.FailingSince.IsZero() {
			found = append(found, Finding{Rule: TargetFails, Subject: t.Name, Name: t.Name, Mend: "sudo cupola alerts test " + t.Name,
				Text: fmt.Sprintf("The target takes no messages since %s: %s", t.FailingSince.UTC().Format(time.RFC3339), t.Failure)})
		}
	}
	return found, nil
}
