package backups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/cmd/cupola/transfer"
	"cupola/server/admin/backup"
	"cupola/server/admin/repository"
	"cupola/server/datadir"
	"cupola/server/doctor"
	"cupola/store"
)

// restoreSpaceCmd is cupola backups restore-space.
type restoreSpaceCmd struct {
	capi.Flags
	Space    string    `arg:"" help:"The space's name in the backup; it may have been deleted since."`
	Backup   string    `arg:"" optional:"" help:"The backup's name, or latest, which is the default."`
	Org      string    `help:"The space's org, if the name is not unique." short:"o"`
	From     string    `help:"A file that 'cupola backup' wrote, or an address that --backup-to has; by default the first one of the running daemon." placeholder:"FILE|ADDRESS"`
	Identity string    `help:"The file that 'cupola backups key' made, or another one of age's identities; not needed for a file." type:"existingfile" placeholder:"FILE"`
	To       time.Time `help:"Restore what the daemon had at this time, like 2026-11-28T10:00:00Z. The data of services is as in the backup." placeholder:"TIME"`
	New      string    `help:"The new space's name; by default that in the backup." placeholder:"NAME"`
	transfer.RestoreFlags
}

// Help says what comes back.
func (c *restoreSpaceCmd) Help() string {
	return "Makes a new space in the running daemon of what a backup and what changed since it have of one. Apps come with droplet, package, manifest (environment, processes, health checks, jobs, labels, bindings) and those of their routes " +
		"that are free; service instances of the built-in broker come with their data, user-provided ones with their credentials; so do the roles of users who exist. Apps are stopped, unless --start is given. No running space is changed. " +
		"What is not restored is listed. If it is broken off, the same command goes on. For root, on the daemon's machine."
}

// Run restores a space. The backup's content, and the key that opens it, stay with this process.
func (c *restoreSpaceCmd) Run(e *command.Env) (err error) {
	file, err := c.check()
	if err != nil {
		return err
	}
	dir, err := c.Root()
	if err != nil {
		return err
	}
	r, err := c.prepare(e.Ctx, dir)
	if err != nil {
		return err
	}
	if !file && c.To.IsZero() { // what a restore that goes on did has changed what is newest
		if c.To, err = r.Begun(e.Ctx, c.Org); err != nil {
			return err
		}
	}
	scratch, remove, err := newScratch(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	r.Dir = filepath.Join(scratch, "data")
	if err := c.extract(e, file, scratch, r); err != nil {
		return command.Interrupted(e, err)
	}
	err = command.Interrupted(e, r.Run(e))
	if _, ended := errors.AsType[capi.Unreached](err); ended {
		err = fmt.Errorf("%w\nOnce the daemon runs again, the same command goes on", err)
	}
	return err
}

// newScratch makes a directory for what is read of a backup, which has secrets of all spaces, and removes those that killed commands left. The next
// daemon would remove them, too.
func newScratch(dir string) (scratch string, remove func() error, err error) {
	const prefix = datadir.ScratchPrefix + "space-"
	all, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	for _, left := range all {
		if !doctor.Held(left) {
			err = errors.Join(err, os.RemoveAll(left))
		}
	}
	if err != nil {
		return "", nil, err
	}
	scratch, remove, err = doctor.TempDir(dir, prefix)
	if err != nil {
		return "", nil, err
	}
	return scratch, remove, os.Chmod(scratch, 0o700)
}

// prepare is a restore into the daemon of a data directory.
func (c *restoreSpaceCmd) prepare(ctx context.Context, dir string) (*transfer.Restore, error) {
	to, err := c.Login(ctx)
	if err != nil {
		return nil, err
	}
	secret, err := os.ReadFile(filepath.Join(dir, "db", store.KeyFile))
	if err != nil {
		return nil, err
	}
	create := func(ctx context.Context, space string, body capi.Doc, i backup.SpaceInstance) error {
		return withContent(dir, func(w io.Writer) error { return copyFile(w, i.Content) }, func(content string) error {
			return createFrom(ctx, to, space, body, i.Instance, content)
		})
	}
	return &transfer.Restore{RestoreFlags: c.RestoreFlags, To: to, New: cmp.Or(c.New, c.Space), Secret: secret, Create: create}, nil
}

// copyFile writes what a file has.
func copyFile(w io.Writer, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// check checks the flags, and reports whether --from is a file.
func (c *restoreSpaceCmd) check() (file bool, err error) {
	info, serr := os.Stat(c.From)
	file = serr == nil && info.Mode().IsRegular()
	switch {
	case file && (c.Backup != "" || c.Identity != "" || !c.To.IsZero()):
		return false, fmt.Errorf("%s is the file of one backup, and not encrypted: give neither the name of a backup nor --identity nor --to", c.From)
	case !file && c.Identity == "":
		return false, errors.New("give --identity and the file that opens the backups; or --from and a file that 'cupola backup' wrote")
	}
	return file, nil
}

// extract writes what the backup has of the space to the directory of r, which is below scratch.
func (c *restoreSpaceCmd) extract(e *command.Env, file bool, scratch string, r *transfer.Restore) error {
	if err := os.Mkdir(r.Dir, 0o700); err != nil {
		return err
	}
	p := command.NewProgress(e)
	defer p.Clear()
	extract := func(from backup.Source) error {
		_, err := backup.ExtractSpace(e.Ctx, r.Dir, from, backup.SpaceName{Name: c.Space, Org: c.Org}, c.App, func(s *backup.Space) error {
			r.Space = s
			return r.Check(e.Ctx)
		}, p.Step)
		return err
	}
	if file {
		if err := extract(backup.Source{File: c.From}); err != nil {
			return fmt.Errorf("%s: %w", c.From, err)
		}
		return nil
	}
	at := identityFlags{offsiteFlags: offsiteFlags{DaemonFlags: c.DaemonFlags, From: c.From}, Name: cmp.Or(c.Backup, "latest"), Identity: c.Identity}
	return at.with(e, func(ctx context.Context, from *repository.Repository) error {
		identities, err := readIdentities(c.Identity)
		if err != nil {
			return err
		}
		reach, err := at.reach(ctx, e, from, c.To)
		if err != nil {
			return err
		}
		parts, err := loadParts(ctx, e, from, reach, identities, scratch)
		if err != nil {
			return err
		}
		stream, err := from.Stream(ctx, reach.Base, identities)
		if err != nil {
			return err
		}
		defer stream.Close()
		return extract(backup.Source{Tar: stream, Parts: parts, Made: reach.To()})
	})
}
