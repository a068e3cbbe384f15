package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cupola/runtime/durable"
	"cupola/server/admin"
	"cupola/server/admin/archive"
	"cupola/server/admin/backup"
	"cupola/server/admin/database"
	"cupola/server/admin/steps"
	"cupola/store"
)

type backupCmd struct {
	daemonFlags
	File string `arg:"" help:"The file to write; '-' for standard output."`
	backup.Options
	Replace bool `help:"Overwrite an existing file."`
}

// Run writes a backup, whether the daemon runs or not.
func (c *backupCmd) Run(e *env) error {
	if c.File == "-" {
		return c.stream(e)
	}
	if _, err := os.Lstat(c.File); err == nil && !c.Replace {
		return fmt.Errorf("%s already exists: give another file, or --replace", c.File)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	p := newStackProgress(e)
	size, err := writeBeside(c.File, func(w io.Writer) error { return c.write(e.ctx, e, w, p) })
	p.clear()
	if err != nil {
		return interrupted(e, err)
	}
	fmt.Fprintf(e.out, "Wrote %s (%s) in %.1f s. It contains the key of all secrets: store it as safely as them.\n", c.File, bytesText(size), time.Since(p.started).Seconds())
	if c.WithoutVolumes {
		fmt.Fprintln(e.out, "It does not contain the volumes of data services and deployments: dump their data with their own tools.")
	}
	return nil
}

func (c *backupCmd) stream(e *env) error {
	if e.terminal {
		return errors.New("cannot write a backup to a terminal: give a file, or redirect the output")
	}
	quiet := *e
	quiet.out, quiet.terminal = io.Discard, false
	return interrupted(e, c.write(e.ctx, e, e.out, newStackProgress(&quiet)))
}

func (c *backupCmd) write(ctx context.Context, e *env, w io.Writer, p *stackProgress) error {
	dir, err := c.root()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "db", store.DatabaseFile)); err != nil {
		return fmt.Errorf("cannot find a database to back up: %w", err)
	}
	o := c.Options
	o.Version = buildVersion()
	packed, err := archive.Compress(w)
	if err != nil {
		return err
	}
	err = admin.Backup.Do(ctx, c.target(e), o, packed, func(done, total int64) {
		p.step(steps.Step{Step: "backup", Done: done, Total: total})
	})
	return errors.Join(err, packed.Close())
}

func interrupted(e *env, err error) error {
	if err != nil && e.ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}

// writeBeside writes a file of its owner's alone, which has its name only once
// it is whole and on disk.
func writeBeside(name string, write func(io.Writer) error) (size int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".") // 0600
	if fault, ok := errors.AsType[*fs.PathError](err); ok {
		return 0, fmt.Errorf("write %s: %w", name, fault.Err) // whoever named it knows of no other file
	}
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name()) // unless it has another name by then
	err = write(f)
	info, serr := f.Stat()
	if err = errors.Join(err, serr, f.Close()); err != nil {
		return 0, err
	}
	return info.Size(), durable.Rename(f.Name(), name)
}

type verifyCmd struct {
	daemonFlags
	Database bool   `help:"Check every page of the database in --data-dir instead; the daemon may run meanwhile."`
	File     string `arg:"" optional:"" help:"The backup file." type:"existingfile"`
}

// Run verifies a backup and tells what it holds.
func (c *verifyCmd) Run(e *env) error {
	if c.Database == (c.File != "") {
		return errors.New("no backup to verify: give its file, or --database")
	}
	if c.Database {
		if err := c.checkDatabase(e); err != nil {
			return interrupted(e, err)
		}
		fmt.Fprintf(e.out, "The database of %s is valid.\n", c.DataDir)
		return nil
	}
	p := newStackProgress(e)
	r, err := backup.Verify(e.ctx, c.File, p.step)
	p.clear()
	if err != nil {
		return interrupted(e, fmt.Errorf("%s: %w", c.File, err))
	}
	fmt.Fprintf(e.out, "%s is valid: written %s by cupola %s, schema %d, %d files, %d volumes, %s.\n", c.File, r.Created.Local().Format("2006-01-02 15:04"), r.Version, r.Manifest.Schema, len(r.Members), len(r.Volumes), bytesText(r.Bytes()))
	tellLeft(e, r.Left, "")
	return nil
}

// checkDatabase reads all of the data directory's database.
func (c *verifyCmd) checkDatabase(e *env) error {
	dir, err := c.root()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "db", store.DatabaseFile)); err != nil {
		return fmt.Errorf("cannot find a database to check: %w", err)
	}
	_, err = admin.CheckDatabase.Do(e.ctx, c.target(e), admin.None{}, nil)
	return err
}

type restoreCmd struct {
	daemonFlags
	Database string `help:"Restore only the database, from an automatic backup: a file in db/backups, or 'latest'. The daemon must be stopped." placeholder:"FILE"`
	File     string `arg:"" optional:"" help:"The backup file." type:"existingfile"`
}

// Run restores a backup.
func (c *restoreCmd) Run(e *env) error {
	if (c.Database == "") == (c.File == "") {
		return errors.New("no backup to restore: give its file, or --database and an automatic backup")
	}
	if c.Database != "" {
		return c.restoreDatabase(e)
	}
	p := newStackProgress(e)
	dir, err := c.root()
	if err != nil {
		return err
	}
	r, err := backup.Restore(e.ctx, dir, c.File, e.log, p.step)
	p.clear()
	if err != nil {
		return interrupted(e, fmt.Errorf("restore %s: %w", c.File, err))
	}
	fmt.Fprintf(e.out, "Restored %s, written %s, to %s in %.1f s. Start the daemon and its apps with:\n", c.File, r.Created.Local().Format("2006-01-02 15:04"), c.DataDir, time.Since(p.started).Seconds())
	fmt.Fprintf(e.out, e.called("  sudo cupola serve --data-dir %s\n"), c.DataDir)
	tellLeft(e, r.Left, c.DataDir)
	return nil
}

func (c *restoreCmd) restoreDatabase(e *env) error {
	dir, err := c.root()
	if err != nil {
		return err
	}
	r, err := database.Restore(e.ctx, dir, c.Database, e.log)
	if err != nil {
		return interrupted(e, fmt.Errorf("restore the database: %w", err))
	}
	fmt.Fprintf(e.out, "Restored the database of %s. Later changes are lost.\n", r.Made.Local().Format("2006-01-02 15:04:05"))
	if r.Aside != "" {
		fmt.Fprintf(e.out, "The replaced database is kept as %s: remove it when you no longer need it.\n", r.Aside)
	}
	if r.Lost > 0 {
		fmt.Fprintf(e.out, "%d of its packages, droplets or buildpacks were deleted since: push apps that do not start again.\n", r.Lost)
	}
	fmt.Fprintf(e.out, e.called("Start the daemon: sudo cupola serve --data-dir %s\n"), c.DataDir)
	return nil
}

// tellLeft says how to get what a backup only names. dataDir is "" before it is
// restored.
func tellLeft(e *env, left []archive.Left, dataDir string) {
	if len(left) == 0 {
		return
	}
	w := e.out
	fmt.Fprintln(w, "It does not contain these images and stacks, which its apps may need:")
	if slices.ContainsFunc(left, func(l archive.Left) bool { return l.Kind == "volume" }) {
		fmt.Fprintln(w, "Instances without their volume do not start: delete and recreate them.")
	}
	for _, l := range left {
		fmt.Fprintf(w, "  %s %s", l.Kind, l.Name)
		switch {
		case l.Kind == "volume":
			fmt.Fprintf(w, " (%s)", l.Origin)
		case l.Origin != "":
			fmt.Fprintf(w, " (made from %s)", l.Origin)
		}
		fmt.Fprintln(w)
		if dataDir == "" {
			continue
		}
		lock := filepath.Join(dataDir, archive.LocksDir, l.Name+".json")
		_, err := os.Stat(lock)
		switch {
		case l.Kind == "image":
			fmt.Fprintf(w, e.called("    sudo cupola stack pull --data-dir %s %s\n"), dataDir, l.Name)
		case err == nil:
			fmt.Fprintf(w, e.called("    sudo cupola stack build --data-dir %s --lock %s --name %s\n"), dataDir, lock, l.Name)
		}
	}
}
