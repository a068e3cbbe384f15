// Package backups holds the commands that make, verify and restore backups: of all that a
// daemon has, of one space, and of one service instance.
package backups

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

	"cupola/cmd/cupola/command"
	"cupola/server/admin"
	"cupola/server/admin/archive"
	"cupola/server/admin/backup"
	"cupola/server/admin/database"
	"cupola/server/admin/steps"
	"cupola/store"
)

// Cmd is cupola backup.
type Cmd struct {
	command.DaemonFlags
	File string `arg:"" help:"The file to write; '-' for standard output."`
	backup.Options
	Replace bool `help:"Overwrite an existing file."`
}

// Run writes a backup, whether the daemon runs or not.
func (c *Cmd) Run(e *command.Env) error {
	if c.File == "-" {
		return c.stream(e)
	}
	if _, err := os.Lstat(c.File); err == nil && !c.Replace {
		return fmt.Errorf("%s already exists: give another file, or --replace", c.File)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	p := command.NewProgress(e)
	size, err := command.WriteFile(c.File, func(w io.Writer) error { return c.write(e.Ctx, e, w, p) })
	p.Clear()
	if err != nil {
		return command.Interrupted(e, err)
	}
	fmt.Fprintf(e.Out, "Wrote %s (%s) in %.1f s. It contains the key of all secrets: store it as safely as them.\n", c.File, command.BytesText(size), time.Since(p.Started).Seconds())
	if c.WithoutVolumes {
		fmt.Fprintln(e.Out, "It does not contain the volumes of data services and deployments: dump their data with their own tools.")
	}
	return nil
}

func (c *Cmd) stream(e *command.Env) error {
	if e.Terminal {
		return errors.New("cannot write a backup to a terminal: give a file, or redirect the output")
	}
	quiet := *e
	quiet.Out, quiet.Terminal = io.Discard, false
	return command.Interrupted(e, c.write(e.Ctx, e, e.Out, command.NewProgress(&quiet)))
}

func (c *Cmd) write(ctx context.Context, e *command.Env, w io.Writer, p *command.Progress) error {
	dir, err := c.Root()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "db", store.DatabaseFile)); err != nil {
		return fmt.Errorf("cannot find a database to back up: %w", err)
	}
	o := c.Options
	o.Version = command.BuildVersion()
	packed, err := archive.Compress(w)
	if err != nil {
		return err
	}
	err = admin.Backup.Do(ctx, c.Target(e), o, packed, func(done, total int64) {
		p.Step(steps.Step{Step: "backup", Done: done, Total: total})
	})
	return errors.Join(err, packed.Close())
}

// VerifyCmd is cupola verify.
type VerifyCmd struct {
	command.DaemonFlags
	Database bool   `help:"Check every page of the database in --data-dir instead; the daemon may run meanwhile."`
	File     string `arg:"" optional:"" help:"The backup file." type:"existingfile"`
}

// Run verifies a backup and prints what it holds.
func (c *VerifyCmd) Run(e *command.Env) error {
	if c.Database == (c.File != "") {
		return errors.New("no backup to verify: give its file, or --database")
	}
	if c.Database {
		if err := c.checkDatabase(e); err != nil {
			return command.Interrupted(e, err)
		}
		fmt.Fprintf(e.Out, "The database of %s is valid.\n", c.DataDir)
		return nil
	}
	p := command.NewProgress(e)
	r, err := backup.Verify(e.Ctx, c.File, p.Step)
	p.Clear()
	if err != nil {
		return command.Interrupted(e, fmt.Errorf("%s: %w", c.File, err))
	}
	fmt.Fprintf(e.Out, "%s is valid: written %s by cupola %s, schema %d, %d files, %d volumes, %s.\n", c.File, r.Created.Local().Format("2006-01-02 15:04"), r.Version, r.Manifest.Schema, len(r.Members), len(r.Volumes), command.BytesText(r.Bytes()))
	tellLeft(e, r.Left, "")
	return nil
}

// checkDatabase reads all of the data directory's database.
func (c *VerifyCmd) checkDatabase(e *command.Env) error {
	dir, err := c.Root()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "db", store.DatabaseFile)); err != nil {
		return fmt.Errorf("cannot find a database to check: %w", err)
	}
	_, err = admin.CheckDatabase.Do(e.Ctx, c.Target(e), admin.None{}, nil)
	return err
}

// RestoreCmd is cupola restore.
type RestoreCmd struct {
	command.DaemonFlags
	Database string `help:"Restore only the database, from an automatic backup: a file in db/backups, or 'latest'. The daemon must be stopped." placeholder:"FILE"`
	File     string `arg:"" optional:"" help:"The backup file; '-' for standard input." type:"existingfile"`
}

// Run restores a backup.
func (c *RestoreCmd) Run(e *command.Env) error {
	if (c.Database == "") == (c.File == "") {
		return errors.New("no backup to restore: give its file, or --database and an automatic backup")
	}
	if c.Database != "" {
		return c.restoreDatabase(e)
	}
	if c.File == "-" {
		return c.restoreStream(e)
	}
	return restoreAll(e, c.DaemonFlags, fetched{name: c.File, file: c.File})
}

// restoreStream restores what standard input has. A backup is read twice, since it is verified first: meanwhile it is a file next to
// the data directory that has no name, and so ends with this process.
func (c *RestoreCmd) restoreStream(e *command.Env) error {
	if command.IsTerminal(os.Stdin) {
		return errors.New("cannot read a backup from a terminal: give a file, or redirect the input")
	}
	dir, err := c.Root()
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(dir), ".backup-*")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	if _, err := io.Copy(f, os.Stdin); err != nil {
		return fmt.Errorf("read the backup from standard input: %w", err)
	}
	return restoreAll(e, c.DaemonFlags, fetched{name: "standard input", file: fmt.Sprintf("/proc/self/fd/%d", f.Fd())})
}

// restoreAll makes a data directory of a backup.
func restoreAll(e *command.Env, c command.DaemonFlags, from fetched) error {
	p := command.NewProgress(e)
	dir, err := c.Root()
	if err != nil {
		return err
	}
	r, err := backup.Restore(e.Ctx, dir, from.file, from.parts, e.Log, p.Step)
	p.Clear()
	if err != nil {
		return command.Interrupted(e, fmt.Errorf("restore %s: %w", from.name, err))
	}
	fmt.Fprintf(e.Out, "Restored %s, written %s, to %s in %.1f s. Start the daemon and its apps with:\n", from.name, r.Created.Local().Format("2006-01-02 15:04"), c.DataDir, time.Since(p.Started).Seconds())
	fmt.Fprintf(e.Out, e.Called("  sudo cupola serve --data-dir %s\n"), c.DataDir)
	tellLeft(e, r.Left, c.DataDir)
	return nil
}

func (c *RestoreCmd) restoreDatabase(e *command.Env) error {
	dir, err := c.Root()
	if err != nil {
		return err
	}
	r, err := database.Restore(e.Ctx, dir, c.Database, e.Log)
	if err != nil {
		return command.Interrupted(e, fmt.Errorf("restore the database: %w", err))
	}
	fmt.Fprintf(e.Out, "Restored the database of %s. Later changes are lost.\n", r.Made.Local().Format("2006-01-02 15:04:05"))
	if r.Aside != "" {
		fmt.Fprintf(e.Out, "The replaced database is kept as %s: remove it when you no longer need it.\n", r.Aside)
	}
	if r.Lost > 0 {
		fmt.Fprintf(e.Out, "%d of its packages, droplets or buildpacks were deleted since: push apps that do not start again.\n", r.Lost)
	}
	fmt.Fprintf(e.Out, e.Called("Start the daemon: sudo cupola serve --data-dir %s\n"), c.DataDir)
	return nil
}

// tellLeft says how to get what a backup only names. dataDir is "" before it is
// restored.
func tellLeft(e *command.Env, left []archive.Left, dataDir string) {
	if len(left) == 0 {
		return
	}
	w := e.Out
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
			fmt.Fprintf(w, e.Called("    sudo cupola stack pull --data-dir %s %s\n"), dataDir, l.Name)
		case err == nil:
			fmt.Fprintf(w, e.Called("    sudo cupola stack build --data-dir %s --lock %s --name %s\n"), dataDir, lock, l.Name)
		}
	}
}
