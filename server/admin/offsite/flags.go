package offsite

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"filippo.io/age"

	"cupola/server/admin/repository"
	"cupola/server/admin/repository/storage"
)

// Flags say where backups go. They are flags of cupola serve.
type Flags struct {
	To           []string       `name:"backup-to" help:"Where encrypted backups go: a directory, sftp://USER@HOST/PATH?key=FILE or s3://HOST/BUCKET/PREFIX?credentials=FILE; none by default." env:"CUPOLA_BACKUP_TO" placeholder:"ADDRESS"`
	Recipients   []string       `name:"backup-recipient" help:"Public key of age that backups are encrypted for; 'cupola backups key FILE' makes a pair." env:"CUPOLA_BACKUP_RECIPIENT" placeholder:"KEY"`
	Every        time.Duration  `name:"backup-every" help:"How often a backup is made." default:"24h" env:"CUPOLA_BACKUP_EVERY" placeholder:"TIME"`
	ChangesEvery time.Duration  `name:"backup-changes-every" help:"How often changes since the last backup are sent, except the data of services; 0 disables it." default:"15s" env:"CUPOLA_BACKUP_CHANGES_EVERY" placeholder:"TIME"`
	Keep         map[string]int `name:"backup-keep" help:"How many backups are kept: the last ones, and the newest of so many days, weeks and months." default:"last=3,daily=7,weekly=4,monthly=6" mapsep:"," env:"CUPOLA_BACKUP_KEEP" placeholder:"NAME=N,…"`
	Rate         int            `name:"backup-rate" help:"Maximum rate at which backups are sent, in MiB a second; unlimited by default." env:"CUPOLA_BACKUP_RATE" placeholder:"N"`
}

// How often a backup may be made, and changes be sent, at most.
const (
	minEvery        = time.Minute
	minChangesEvery = time.Second
)

// Check refuses flags that cannot be followed.
func (f *Flags) Check() error {
	var faults []error
	for _, to := range f.To {
		if err := storage.Check(to); err != nil {
			faults = append(faults, fmt.Errorf("invalid --backup-to: %w", err))
		}
	}
	if len(f.To) > 0 {
		if _, err := f.recipients(); err != nil {
			faults = append(faults, fmt.Errorf("invalid --backup-recipient: %w", err))
		}
	}
	if f.Every != 0 && f.Every < minEvery {
		faults = append(faults, fmt.Errorf("invalid --backup-every %s: give at least %s", f.Every, minEvery))
	}
	if f.ChangesEvery != 0 && f.ChangesEvery < minChangesEvery {
		faults = append(faults, fmt.Errorf("invalid --backup-changes-every %s: give at least %s, or 0", f.ChangesEvery, minChangesEvery))
	}
	if f.Rate < 0 {
		faults = append(faults, fmt.Errorf("invalid --backup-rate %d: give MiB a second", f.Rate))
	}
	_, err := f.keep()
	return errors.Join(append(faults, err)...)
}

func (f *Flags) recipients() ([]age.Recipient, error) {
	return repository.ParseRecipients(f.Recipients)
}

// keep is how many backups are kept. Flags that name none keep what --help says.
func (f *Flags) keep() (k repository.Keep, err error) {
	counts := map[string]*int{"last": &k.Last, "daily": &k.Daily, "weekly": &k.Weekly, "monthly": &k.Monthly}
	if len(f.Keep) == 0 {
		return repository.Keep{Last: 3, Daily: 7, Weekly: 4, Monthly: 6}, nil
	}
	for name, n := range f.Keep {
		count, ok := counts[name]
		if !ok || n < 0 {
			return k, fmt.Errorf("invalid --backup-keep %s=%d: give numbers of %v", name, n, slices.Sorted(maps.Keys(counts)))
		}
		*count = n
	}
	return k, nil
}
