package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"filippo.io/age"

	"cupola/cmd/cupola/command"
	"cupola/server/admin"
	"cupola/server/admin/archive"
	"cupola/server/admin/offsite"
	"cupola/server/admin/repository"
	"cupola/server/admin/repository/storage"
	"cupola/server/admin/steps"
)

// OffsiteCmd is cupola backups.
type OffsiteCmd struct {
	Status  offsiteStatusCmd  `cmd:"" default:"withargs"`
	Run     offsiteRunCmd     `cmd:""`
	List    offsiteListCmd    `cmd:"" help:"List the backups at an address."`
	Verify  offsiteVerifyCmd  `cmd:"" help:"Read every byte of the backups at an address, and name those that are damaged. It needs no key."`
	Fetch   offsiteFetchCmd   `cmd:"" help:"Fetch a backup, decrypted, as a file for 'cupola verify' and 'cupola restore'; without what changed since it."`
	Restore offsiteRestoreCmd `cmd:"" help:"Fetch a backup and what changed since, and restore the data directory from them."`
	Space   restoreSpaceCmd   `cmd:"" name:"restore-space" help:"Restore one space of a backup, next to what runs."`
	Drill   drillCmd          `cmd:"" help:"Restore a backup into a separate directory, start everything from it apart from all networks, and show what runs."`
	Key     offsiteKeyCmd     `cmd:"" help:"Make a key of age: the file that opens backups, and the public key for --backup-recipient."`
}

type offsiteStatusCmd struct{ command.DaemonFlags }

// Run prints how the backups at each address are.
func (c *offsiteStatusCmd) Run(e *command.Env) error {
	all, err := admin.BackupsStatus.Do(e.Ctx, c.Target(e), admin.None{}, nil)
	if err != nil {
		return err
	}
	return writeStatuses(e, all)
}

func writeStatuses(e *command.Env, all []offsite.Status) error {
	t := &command.Table{Width: command.Width(e)}
	t.Add("TO", "LAST BACKUP", "SIZE", "SENT", "NEXT", "REACHES TO", "STATE")
	for _, s := range all {
		last, size, sent, state := "never", "", "", "ok"
		if s.Last.Name != "" {
			last, size, sent = s.Last.Name, command.BytesText(s.Last.Size), command.BytesText(s.Last.Added)
		}
		switch {
		case s.Running:
			state = "running"
		case s.Error != "" && s.IsMade():
			state = s.Error
		case s.Error != "":
			state = fmt.Sprintf("failed at %s: %s", command.When(s.Tried), s.Error)
		case s.Reach.Error != "":
			state = "changes are not sent: " + s.Reach.Error
		}
		t.Add(s.To, last, size, sent, command.When(s.Next), reachText(s.Reach.To), state)
	}
	return t.Write(e.Out)
}

// reachText is a time to the second: "" for none.
func reachText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

type offsiteRunCmd struct {
	command.DaemonFlags
	offsite.RunRequest
}

// Run makes backups now.
func (c *offsiteRunCmd) Run(e *command.Env) error {
	p := command.NewProgress(e)
	all, err := admin.BackupsRun.Do(e.Ctx, c.Target(e), c.RunRequest, p.Step)
	p.Clear()
	if err != nil {
		return command.Interrupted(e, err)
	}
	return writeStatuses(e, all)
}

// offsiteFlags say where the backups are.
type offsiteFlags struct {
	command.DaemonFlags
	From string `help:"The address that the backups are at, as --backup-to has it; by default the first one of the running daemon." placeholder:"ADDRESS"`
}

// with calls f with the repository.
func (f *offsiteFlags) with(e *command.Env, use func(ctx context.Context, r *repository.Repository) error) (err error) {
	from := f.From
	if from == "" {
		all, err := admin.BackupsStatus.Do(e.Ctx, f.Target(e), admin.None{}, nil)
		if err != nil {
			return fmt.Errorf("give --from: no daemon says where the backups are: %w", err)
		}
		from = all[0].To
	}
	s, err := storage.Open(e.Ctx, from)
	if err == nil {
		defer func() { err = errors.Join(err, s.Close()) }()
		var r *repository.Repository
		if r, err = repository.Open(e.Ctx, s); err == nil {
			return command.Interrupted(e, use(e.Ctx, r))
		}
	}
	return command.Interrupted(e, fmt.Errorf("%s: %w", from, err))
}

type offsiteListCmd struct{ offsiteFlags }

// Run lists the backups.
func (c *offsiteListCmd) Run(e *command.Env) error {
	return c.with(e, func(ctx context.Context, r *repository.Repository) error {
		names, err := r.Names(ctx)
		if err != nil {
			return err
		}
		t := &command.Table{Width: command.Width(e)}
		t.Add("BACKUP", "MADE", "REACHES TO", "SIZE", "VERSION", "MACHINE")
		for _, name := range names {
			s, err := r.Find(ctx, name)
			if err != nil {
				t.Add(name, "", "", "", "", err.Error())
				continue
			}
			last, err := r.LastPart(ctx, name)
			if err != nil {
				return err
			}
			t.Add(name, command.When(s.Created), reachText(last), command.BytesText(s.Size), s.Version, s.Host)
		}
		return t.Write(e.Out)
	})
}

type offsiteVerifyCmd struct{ offsiteFlags }

// Run reads all that is stored.
func (c *offsiteVerifyCmd) Run(e *command.Env) error {
	return c.with(e, func(ctx context.Context, r *repository.Repository) error {
		p := command.NewProgress(e)
		damaged, err := r.Verify(ctx, func(done, total int64) { p.Step(steps.Step{Step: "verify", Done: done, Total: total}) })
		p.Clear()
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(damaged)) {
			fmt.Fprintf(e.Out, "%s is damaged: %v\n", name, damaged[name])
		}
		if len(damaged) > 0 {
			return fmt.Errorf("%d backups are damaged: the next backup stores again what it needs", len(damaged))
		}
		names, err := r.Names(ctx)
		fmt.Fprintf(e.Out, "All of %d backups are there, as they were written.\n", len(names))
		return err
	})
}

// identityFlags name a backup, and what opens it.
type identityFlags struct {
	offsiteFlags
	Name     string `arg:"" help:"The backup's name, or latest."`
	Identity string `help:"The file that 'cupola backups key' made, or another one of age's identities." required:"" type:"existingfile" placeholder:"FILE"`
}

// fetch writes a backup to a file.
func (f *identityFlags) fetch(ctx context.Context, e *command.Env, r *repository.Repository, file string) (s repository.Snapshot, size int64, err error) {
	identities, err := readIdentities(f.Identity)
	if err != nil {
		return s, 0, err
	}
	if s, err = r.Find(ctx, f.Name); err != nil {
		return s, 0, err
	}
	size, err = load(ctx, e, r, s, identities, file)
	return s, size, err
}

// load writes a backup, or a part, to a file.
func load(ctx context.Context, e *command.Env, r *repository.Repository, s repository.Snapshot, identities []age.Identity, file string) (size int64, err error) {
	p := command.NewProgress(e)
	defer p.Clear()
	return command.WriteFile(file, func(w io.Writer) error {
		packed, err := archive.Compress(w)
		if err != nil {
			return err
		}
		count := &steps.Writer{To: packed, Total: s.Size, Report: func(done, total int64) { p.Step(steps.Step{Step: "fetch", Done: done, Total: total}) }}
		return errors.Join(r.Load(ctx, s, identities, count), packed.Close())
	})
}

// fetched is a backup with what changed since, in files.
type fetched struct {
	name  string // for people
	file  string
	parts []string
}

// fetchReach writes a backup, and what changed since until a time, the zero one for now, to
// files below dir, which is there.
func (f *identityFlags) fetchReach(ctx context.Context, e *command.Env, r *repository.Repository, to time.Time, dir string) (*fetched, error) {
	identities, err := readIdentities(f.Identity)
	if err != nil {
		return nil, err
	}
	reach, err := f.reach(ctx, e, r, to)
	if err != nil {
		return nil, err
	}
	found := &fetched{name: reach.Base.Name, file: filepath.Join(dir, "backup")}
	if _, err := load(ctx, e, r, reach.Base, identities, found.file); err != nil {
		return nil, err
	}
	if found.parts, err = loadParts(ctx, e, r, reach, identities, dir); err != nil {
		return nil, err
	}
	if len(reach.Parts) > 0 {
		found.name += " with what changed until " + reachText(reach.To())
	}
	return found, nil
}

// reach finds the backup and what changed since until a time, and says what of that is damaged.
func (f *identityFlags) reach(ctx context.Context, e *command.Env, r *repository.Repository, to time.Time) (repository.Reach, error) {
	reach, err := r.Reach(ctx, f.Name, to)
	if err == nil && reach.Left != nil {
		fmt.Fprintf(e.Out, "What changed last is damaged, and is left out: %v\n", reach.Left)
	}
	return reach, err
}

// loadParts writes what changed since a backup to files below dir.
func loadParts(ctx context.Context, e *command.Env, r *repository.Repository, reach repository.Reach, identities []age.Identity, dir string) (files []string, err error) {
	journal := r.Journal(reach.Base.Name)
	for n, part := range reach.Parts {
		file := filepath.Join(dir, fmt.Sprint("part", n))
		if _, err := load(ctx, e, journal, part, identities, file); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

func readIdentities(file string) ([]age.Identity, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	all, err := age.ParseIdentities(in)
	if err != nil {
		return nil, fmt.Errorf("--identity %s: %w", file, err)
	}
	return all, nil
}

type offsiteFetchCmd struct {
	identityFlags
	File    string `arg:"" help:"The file to write."`
	Replace bool   `help:"Overwrite an existing file."`
}

// Run fetches a backup.
func (c *offsiteFetchCmd) Run(e *command.Env) error {
	if _, err := os.Lstat(c.File); err == nil && !c.Replace {
		return fmt.Errorf("%s already exists: give another file, or --replace", c.File)
	}
	return c.with(e, func(ctx context.Context, r *repository.Repository) error {
		s, size, err := c.fetch(ctx, e, r, c.File)
		if err == nil {
			fmt.Fprintf(e.Out, "Fetched %s to %s (%s). It is not encrypted, and contains the key of all secrets.\n", s.Name, c.File, command.BytesText(size))
		}
		return err
	})
}

type offsiteRestoreCmd struct {
	identityFlags
	To time.Time `help:"Restore what the daemon had at this time, like 2026-11-28T10:00:00Z; with latest, from the backup that goes farthest by then. The data of services is as in the backup." placeholder:"TIME"`
}

// Run fetches a backup next to the data directory, and restores it.
func (c *offsiteRestoreCmd) Run(e *command.Env) error {
	dir, err := c.Root()
	if err != nil {
		return err
	}
	return c.with(e, func(ctx context.Context, r *repository.Repository) (err error) {
		temp, err := os.MkdirTemp(filepath.Dir(dir), ".cupola-fetch-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
		found, err := c.fetchReach(ctx, e, r, c.To, temp)
		if err != nil {
			return err
		}
		return restoreAll(e, c.DaemonFlags, *found)
	})
}

type offsiteKeyCmd struct {
	File string `arg:"" help:"The file to write; it must not exist."`
}

// Run makes a pair of keys.
func (c *offsiteKeyCmd) Run(e *command.Env) error {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "# created: %s\n# public key: %s\n%s\n", time.Now().Format(time.RFC3339), key.Recipient(), key)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "Wrote %s. Keep a copy away from this machine: nothing else opens the backups. The daemon needs only the public key:\n\n  --backup-recipient %s\n", c.File, key.Recipient())
	return nil
}
