package alerts

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cupola/store"
	"cupola/store/cf"
)

// BackupFailure is an address that backups away from the machine fail at.
type BackupFailure struct {
	To    string
	Tried time.Time
	Made  bool // the backup was made, and something after it failed
	Error string
}

func (p *Parts) backups(context.Context, map[string]Rule, time.Time) (found []Finding, err error) {
	for _, f := range p.Backups() {
		text := fmt.Sprintf("The backup of %s was not made: %s", f.Tried.UTC().Format(time.RFC3339), f.Error)
		if f.Made {
			text = "At the last backup: " + f.Error
		}
		found = append(found, Finding{Rule: OffsiteBackup, Subject: f.To, Name: f.To, Mend: "sudo cupola backups", Text: text})
	}
	return found, nil
}

// BackupLag is how far an address is behind with what changed since the last backup.
type BackupLag struct {
	To      string
	Seconds float64
	Due     float64   // seconds that it may be behind, however low the threshold is
	Reaches time.Time // what was acknowledged by then is there; the zero time if it is not known
	Error   string
}

func (p *Parts) backupLags(_ context.Context, rules map[string]Rule, _ time.Time) (found []Finding, err error) {
	for _, l := range p.BackupLags() {
		if l.Seconds <= max(rules[OffsiteChanges].Threshold, l.Due) {
			continue
		}
		text := "What changed since the last backup is not there."
		if !l.Reaches.IsZero() {
			text = fmt.Sprintf("What changed since %s is not there.", l.Reaches.UTC().Format(time.RFC3339))
		}
		if l.Error != "" {
			text = strings.TrimSuffix(text, ".") + ": " + l.Error
		}
		found = append(found, Finding{Rule: OffsiteChanges, Subject: l.To, Name: l.To, Mend: "sudo cupola backups", Text: text})
	}
	return found, nil
}

// serviceBackups finds the service instances whose last backup failed.
func (p *Parts) serviceBackups(ctx context.Context, _ map[string]Rule, _ time.Time) (found []Finding, err error) {
	err = p.Store.Read(ctx, func(tx *store.Tx) error {
		failed, err := store.Jobs.LastFailed(tx, cf.JobBackupInstance)
		if err != nil {
			return err
		}
		for _, j := range failed {
			i, err := store.ServiceInstances.Get(tx, j.ResourceGUID)
			if store.IsNotFound(err) {
				continue
			}
			if err != nil {
				return err
			}
			found = append(found, Finding{Rule: ServiceBackup, Subject: i.GUID, Name: i.Name, Text: failureOf(j), Mend: "sudo cupola services backup " + quoted(i.Name)})
		}
		return nil
	})
	return found, err
}

func failureOf(j *cf.Job) string {
	var said []string
	for _, e := range j.Errors {
		said = append(said, e.Detail)
	}
	return "The last backup failed: " + strings.Join(said, "; ")
}
