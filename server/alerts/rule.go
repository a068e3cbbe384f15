package alerts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cupola/runtime/suggest"
	"cupola/store"
	"cupola/store/cf"
)

// Rule is a condition that alerts are made of.
type Rule struct {
	Name      string
	Help      string
	Severity  cf.AlertSeverity
	For       time.Duration // how long the condition must last before the alert fires
	Threshold float64       // in Unit; 0 without a Unit
	Unit      string        // what the threshold counts; "" where the rule has none
	Once      bool          // the alert is not repeated while it fires
	Enabled   bool
}

// The names of the rules.
const (
	AppCrashing      = "app-crashing"
	AppUnhealthy     = "app-unhealthy"
	AppUnplaced      = "app-unplaced"
	DiskShort        = "disk-short"
	MemoryShort      = "memory-short"
	Overloaded       = "machine-overloaded"
	CellAbsent       = "cell-absent"
	CertificateEnds  = "certificate-expiring"
	CertificateFails = "certificate-failing"
	DatabaseBackup   = "database-backup-late"
	OffsiteBackup    = "backup-failing"
	OffsiteChanges   = "backup-behind"
	ServiceBackup    = "service-backup-failed"
	DrainFails       = "drain-failing"
	TargetFails      = "alert-target-failing"
	DoctorFails      = "doctor-failure"
	DoctorWarns      = "doctor-warning"
)

// Defaults are the rules as they are without any setting.
func Defaults() []Rule {
	return []Rule{
		{Name: AppCrashing, Severity: cf.AlertCritical, For: time.Minute, Enabled: true, Unit: "crashes", Threshold: 3,
			Help: "An instance of an app crashed several times in a row."},
		{Name: AppUnhealthy, Severity: cf.AlertWarning, For: 5 * time.Minute, Enabled: true,
			Help: "An instance runs, but its readiness check fails: it gets no requests."},
		{Name: AppUnplaced, Severity: cf.AlertCritical, For: 2 * time.Minute, Enabled: true,
			Help: "No cell has room for an instance."},
		{Name: DiskShort, Severity: cf.AlertCritical, For: 2 * time.Minute, Enabled: true, Unit: "percent free", Threshold: 10,
			Help: "The data directory's disk is nearly full, or out of inodes. A large disk fires below 50 GB only."},
		{Name: MemoryShort, Severity: cf.AlertCritical, For: 5 * time.Minute, Enabled: true, Unit: "percent free", Threshold: 5,
			Help: "The machine has hardly any memory available."},
		{Name: Overloaded, Severity: cf.AlertWarning, For: 10 * time.Minute, Enabled: true, Unit: "percent of the time", Threshold: 80,
			Help: "Tasks wait for processors, memory or the disk for most of the time (the kernel's pressure of five minutes; without it, the load)."},
		{Name: CellAbsent, Severity: cf.AlertCritical, For: 2 * time.Minute, Enabled: true,
			Help: "A cell, such as a cluster, does not answer, or requests do not reach what runs on it."},
		{Name: CertificateEnds, Severity: cf.AlertCritical, Enabled: true, Unit: "days left", Threshold: 14,
			Help: "A certificate that was given for a domain, in files or by an ACME server ends soon."},
		{Name: CertificateFails, Severity: cf.AlertWarning, For: 10 * time.Minute, Enabled: true,
			Help: "The ACME server gives no certificate for a name."},
		{Name: DatabaseBackup, Severity: cf.AlertCritical, For: time.Hour, Enabled: true, Unit: "hours old", Threshold: 48,
			Help: "The daily backup of the database is missing or old."},
		{Name: OffsiteBackup, Severity: cf.AlertCritical, For: 10 * time.Minute, Enabled: true,
			Help: "No backup is made at an address of serve --backup-to."},
		{Name: OffsiteChanges, Severity: cf.AlertCritical, Enabled: true, Unit: "seconds behind", Threshold: 60,
			Help: "What changed since the last backup does not get to an address of serve --backup-to."},
		{Name: ServiceBackup, Severity: cf.AlertWarning, Enabled: true,
			Help: "The last backup of a service instance failed."},
		{Name: DrainFails, Severity: cf.AlertWarning, For: 5 * time.Minute, Enabled: true,
			Help: "A syslog drain takes no logs."},
		{Name: TargetFails, Severity: cf.AlertWarning, For: time.Hour, Enabled: true,
			Help: "A target of alerts takes no messages. The other targets get this alert."},
		{Name: DoctorFails, Severity: cf.AlertCritical, Enabled: true,
			Help: "A check of 'cupola doctor' fails. The checks run every six hours."},
		{Name: DoctorWarns, Severity: cf.AlertInfo, Enabled: true, Once: true,
			Help: "A check of 'cupola doctor' warns. It is said once."},
	}
}

// Setting changes a rule; what is nil keeps its default.
type Setting struct {
	Enabled   *bool    `json:"enabled,omitempty"`
	For       *string  `json:"for,omitempty"` // a duration, like 5m
	Threshold *float64 `json:"threshold,omitempty"`
}

const (
	settingsName = "alert rules"
	longestFor   = 7 * 24 * time.Hour
)

// Rules are the rules with their settings.
func Rules(tx *store.Tx) (all []Rule, err error) {
	settings := map[string]Setting{}
	if _, err := store.Settings.Get(tx, settingsName, &settings); err != nil {
		return nil, err
	}
	all = Defaults()
	for n := range all {
		_ = settings[all[n].Name].apply(&all[n]) // it was checked before it was kept
	}
	return all, nil
}

// Change changes a rule. The zero Setting gives it its defaults again.
func Change(tx *store.Tx, name string, s Setting) (r Rule, err error) {
	all := Defaults()
	at := slices.IndexFunc(all, func(r Rule) bool { return r.Name == name })
	if at < 0 {
		return r, unknownRule(name)
	}
	settings := map[string]Setting{}
	if _, err := store.Settings.Get(tx, settingsName, &settings); err != nil {
		return r, err
	}
	delete(settings, name)
	if err := s.apply(&all[at]); err != nil {
		return r, err
	}
	if s != (Setting{}) {
		settings[name] = s
	}
	return all[at], store.Settings.Set(tx, settingsName, settings)
}

func unknownRule(name string) error {
	var names []string
	for _, r := range Defaults() {
		names = append(names, r.Name)
	}
	if suggestion := suggest.Name(name, names); suggestion != "" {
		return invalid("unknown rule %q: did you mean %s?", name, suggestion)
	}
	return invalid("unknown rule %q: give one of %s", name, strings.Join(names, ", "))
}

func (s Setting) apply(r *Rule) error {
	if s.Enabled != nil {
		r.Enabled = *s.Enabled
	}
	if s.For != nil {
		d, err := time.ParseDuration(*s.For)
		if err != nil || d < 0 || d > longestFor {
			return invalid("for must be a time from 0s to 168h, like 5m, not %q", *s.For)
		}
		r.For = d
	}
	if s.Threshold != nil {
		if r.Unit == "" {
			return invalid("invalid threshold: the rule %s has none", r.Name)
		}
		if !(*s.Threshold > 0 && *s.Threshold <= maxThreshold) {
			return invalid("invalid threshold %v: give %s, from 1 to %d", *s.Threshold, r.Unit, maxThreshold)
		}
		r.Threshold = *s.Threshold
	}
	return nil
}

const maxThreshold = 10_000

func invalid(format string, args ...any) error {
	return cf.Errorf(cf.UnprocessableEntity, "%s", fmt.Sprintf(format, args...))
}
