package alerts

import (
	"context"
	"strings"
	"time"

	"cupola/store"
	"cupola/store/cf"
)

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
