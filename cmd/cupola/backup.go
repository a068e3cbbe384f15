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
	"cupola/server"
	"cupola/server/backup"
)

type backupCmd struct {
	daemonFlags
	File           string        `arg:"" help:"The file to write; '-' for standard output."`
	Stacks         string        `help:"whole has the stacks' files and the images in the backup; reference only names them, to be built or pulled again." enum:"whole,reference" default:"whole"`
	WithoutVolumes bool          `help:"Leave out what data services and deployments keep: those that are restored have lost it."`
	Hold           time.Duration `help:"For how long at most who writes to a volume may have to wait while it is copied." default:"1m"`
	Replace        bool          `help:"Replace the file if there is one."`
}

// Run writes a backup, whether the daemon runs or not.
func (c *backupCmd) Run(e *env) error {
	if c.File == "-" {
		return c.stream(e)
	}
	if _, err := os.Lstat(c.File); err == nil && !c.Replace {
		return fmt.Errorf("%s exists already: name another file, or give --replace", c.File)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	p := newStackProgress(e)
	size, err := writeBeside(c.File, func(w io.Writer) error { return c.write(e.ctx, e, w, p) })
	p.clear()
	if err != nil {
		return interrupted(e, err)
	}
	fmt.Fprintf(e.out, "Wrote %s (%s) in %.1f s. It holds the key of all secrets: keep it as you keep them.\n", c.File, bytesText(size), time.Since(p.started).Seconds())
	if c.WithoutVolumes {
		fmt.Fprintln(e.out, "Not in it: the volumes of data services and deployments. Dump what they hold with their own tools.")
	}
	return nil
}

func (c *backupCmd) stream(e *env) error {
	if e.terminal {
		return errors.New("a backup is nothing for a terminal: name a file, or redirect the output")
	}
	quiet := *e
	quiet.out, quiet.terminal = io.Discard, false
	return interrupted(e, c.write(e.ctx, e, e.out, newStackProgress(&quiet)))
}

func (c *backupCmd) write(ctx context.Context, e *env, w io.Writer, p *stackProgress) error {
	o := server.BackupOptions{Reference: c.Stacks == "reference", WithoutVolumes: c.WithoutVolumes, Hold: c.Hold, Version: buildVersion()}
	return server.Backup(ctx, server.Config{DataDir: c.DataDir, Log: e.log}, o, w, func(done, total int64) {
		p.step(server.StackStep{Step: "backup", Done: done, Total: total})
	})
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
	Database bool   `help:"Check instead the database of --data-dir, to the last page; its daemon goes on meanwhile."`
	File     string `arg:"" optional:"" help:"The backup." type:"existingfile"`
}

// Run verifies a backup and tells what it holds.
func (c *verifyCmd) Run(e *env) error {
	if c.Database == (c.File != "") {
		return errors.New("name the backup to verify, or give --database")
	}
	if c.Database {
		if err := server.CheckDatabase(e.ctx, server.Config{DataDir: c.DataDir, Log: e.log}); err != nil {
			return interrupted(e, err)
		}
		fmt.Fprintf(e.out, "The database of %s is sound.\n", c.DataDir)
		return nil
	}
	p := newStackProgress(e)
	r, err := server.VerifyBackup(e.ctx, c.File, func(done, total int64) {
		p.step(server.StackStep{Step: "verify", Done: done, Total: total})
	})
	p.clear()
	if err != nil {
		return interrupted(e, fmt.Errorf("%s: %w", c.File, err))
	}
	fmt.Fprintf(e.out, "%s is sound: of %s by cupola %s, schema %d, %d files, %d volumes, %s.\n", c.File, r.Created.Local().Format("2006-01-02 15:04"), r.Version, r.Manifest.Schema, len(r.Members), len(r.Volumes), bytesText(r.Bytes()))
	tellLeft(e, r.Left, "")
	return nil
}

type restoreCmd struct {
	daemonFlags
	Database string `help:"Put back the database alone, from a copy that the daemon made by itself: a file of db/backups, or 'latest'. Its daemon must be stopped." placeholder:"FILE"`
	File     string `arg:"" optional:"" help:"The backup." type:"existingfile"`
}

// Run restores a backup.
func (c *restoreCmd) Run(e *env) error {
	if (c.Database == "") == (c.File == "") {
		return errors.New("name the backup to restore, or a copy of the database with --database")
	}
	if c.Database != "" {
		return c.restoreDatabase(e)
	}
	p := newStackProgress(e)
	r, err := server.Restore(e.ctx, server.Config{DataDir: c.DataDir, Log: e.log}, c.File, func(step string, done, total int64) {
		p.step(server.StackStep{Step: step, Done: done, Total: total})
	})
	p.clear()
	if err != nil {
		return interrupted(e, fmt.Errorf("restore %s: %w", c.File, err))
	}
	fmt.Fprintf(e.out, "Restored %s of %s into %s in %.1f s. Its apps start with the daemon:\n", c.File, r.Created.Local().Format("2006-01-02 15:04"), c.DataDir, time.Since(p.started).Seconds())
	fmt.Fprintf(e.out, e.called("  sudo cupola serve --data-dir %s\n"), c.DataDir)
	tellLeft(e, r.Left, c.DataDir)
	return nil
}

func (c *restoreCmd) restoreDatabase(e *env) error {
	r, err := server.RestoreDatabase(e.ctx, server.Config{DataDir: c.DataDir, Log: e.log}, c.Database)
	if err != nil {
		return interrupted(e, fmt.Errorf("restore the database: %w", err))
	}
	fmt.Fprintf(e.out, "Put back the database of %s. What was changed since then is lost.\n", r.Made.Local().Format("2006-01-02 15:04:05"))
	if r.Aside != "" {
		fmt.Fprintf(e.out, "The one that was there is kept as %s: remove it when nothing of it is needed.\n", r.Aside)
	}
	if r.Lost > 0 {
		fmt.Fprintf(e.out, "%d packages, droplets or buildpacks that it names were deleted since: push the apps again that do not start.\n", r.Lost)
	}
	fmt.Fprintf(e.out, e.called("Start the daemon: sudo cupola serve --data-dir %s\n"), c.DataDir)
	return nil
}

// tellLeft says how to get what a backup only names. dataDir is "" before it is
// restored.
func tellLeft(e *env, left []backup.Left, dataDir string) {
	if len(left) == 0 {
		return
	}
	w := e.out
	fmt.Fprintln(w, "It only names these, which its apps may need:")
	if slices.ContainsFunc(left, func(l backup.Left) bool { return l.Kind == "volume" }) {
		fmt.Fprintln(w, "What has lost its volume does not start: delete it and make it again.")
	}
	for _, l := range left {
		fmt.Fprintf(w, "  %s %s", l.Kind, l.Name)
		switch {
		case l.Kind == "volume":
			fmt.Fprintf(w, " (%s)", l.Origin)
		case l.Origin != "":
			fmt.Fprintf(w, " (made of %s)", l.Origin)
		}
		fmt.Fprintln(w)
		if dataDir == "" {
			continue
		}
		lock := filepath.Join(dataDir, backup.LocksDir, l.Name+".json")
		_, err := os.Stat(lock)
		switch {
		case l.Kind == "image":
			fmt.Fprintf(w, e.called("    sudo cupola stack pull --data-dir %s %s\n"), dataDir, l.Name)
		case err == nil:
			fmt.Fprintf(w, e.called("    sudo cupola stack build --data-dir %s --lock %s --name %s\n"), dataDir, lock, l.Name)
		}
	}
}
