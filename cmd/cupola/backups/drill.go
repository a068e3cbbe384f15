package backups

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"cupola/cmd/cupola/command"
	"cupola/server/admin/backup"
	"cupola/server/admin/cleanup"
	"cupola/server/admin/repository"
	"cupola/server/doctor"
)

// drillCmd is cupola backups drill.
type drillCmd struct {
	offsiteFlags
	Backup   string        `arg:"" help:"The backup's name, or latest; or the file of a 'cupola backup'."`
	Identity string        `help:"The file that 'cupola backups key' made, or another one of age's identities; not needed for a file." type:"existingfile" placeholder:"FILE"`
	To       time.Time     `help:"Try what the daemon had at this time, like 2026-11-28T10:00:00Z." placeholder:"TIME"`
	Within   time.Duration `help:"How long apps and services may take until they run." default:"2m"`
}

// Run restores a backup into a separate directory, and starts it apart from all networks.
func (c *drillCmd) Run(e *command.Env) error {
	dir, err := c.Root()
	if err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := sweepDrills(e, parent); err != nil {
		return err
	}
	scratch, remove, err := doctor.TempDir(parent, doctor.DrillPrefix)
	if err != nil {
		return err
	}
	found, err := c.drill(e, scratch)
	if err := errors.Join(command.Interrupted(e, err), endDrill(e, scratch, remove)); err != nil {
		return err
	}
	return found.report(e)
}

func (c *drillCmd) drill(e *command.Env, scratch string) (*drilled, error) {
	from := fetched{name: c.Backup, file: c.Backup}
	data, fetchedTo := filepath.Join(scratch, "data"), filepath.Join(scratch, "backup")
	began := time.Now()
	if info, err := os.Stat(c.Backup); err != nil || !info.Mode().IsRegular() {
		found, err := c.fetch(e, fetchedTo)
		if err != nil {
			return nil, err
		}
		from = *found
	}
	p := command.NewProgress(e)
	r, err := backup.Restore(e.Ctx, data, from.file, from.parts, e.Log, p.Step)
	p.Clear()
	if err != nil {
		return nil, fmt.Errorf("restore %s: %w", from.name, err)
	}
	if err := os.RemoveAll(fetchedTo); err != nil { // it took room
		return nil, err
	}
	fmt.Fprintf(e.Out, "Restored %s, written %s, in %.1f s. Starting it, apart from all networks …\n", from.name, r.Created.Local().Format("2006-01-02 15:04"), time.Since(began).Seconds())
	return runDrill(e, data, c.Within)
}

// fetch writes the backup of an address to files below a directory, which it makes.
func (c *drillCmd) fetch(e *command.Env, dir string) (found *fetched, err error) {
	if c.Identity == "" {
		return nil, fmt.Errorf("give --identity to open the backup %s; there is no file of that name", c.Backup)
	}
	from := identityFlags{offsiteFlags: c.offsiteFlags, Name: c.Backup, Identity: c.Identity}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	err = c.with(e, func(ctx context.Context, r *repository.Repository) (err error) {
		found, err = from.fetchReach(ctx, e, r, c.To, dir)
		return err
	})
	return found, err
}

// runDrill runs the daemon of a data directory in a process with a network namespace of its
// own, which ends with this one.
func runDrill(e *command.Env, data string, within time.Duration) (*drilled, error) {
	args := []string{"drill-run", "--data-dir", data, "--within", within.String()}
	if e.Config != "" {
		args = append(args, "--config", e.Config)
	}
	cmd := exec.Command("/proc/self/exe", args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Setpgid: true} // an interrupt is for this process, which ends it
	alive, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(e.Ctx, func() { alive.Close() })
	defer stop()
	err = cmd.Run()
	if e.Level.Level() < 0 { // --debug
		_, _ = io.Copy(e.Err, bytes.NewReader(said.Bytes())) // who does not listen misses it
	}
	if e.Ctx.Err() != nil {
		return nil, context.Cause(e.Ctx)
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		return nil, fmt.Errorf("the daemon did not start from the backup: %s", strings.TrimPrefix(lines[len(lines)-1], "cupola: "))
	}
	found := &drilled{}
	return found, json.Unmarshal(out.Bytes(), found)
}

// endDrill removes what a drill made. Where that fails it says how to do so.
func endDrill(e *command.Env, scratch string, remove func() error) error {
	err := cleanDrill(e, scratch)
	if err == nil {
		err = remove()
	}
	if err != nil {
		return fmt.Errorf("the drill's directory is left, because: %w\n  to remove it: sudo cupola cleanup --data-dir %s && sudo rm -r --one-file-system %s", err, filepath.Join(scratch, "data"), scratch)
	}
	return nil
}

// cleanDrill ends what still runs of a drill, or was restored when it was killed.
func cleanDrill(e *command.Env, scratch string) error {
	data := filepath.Join(scratch, "data")
	if err := backup.Sweep(data); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(data, "lock")); err != nil {
		return nil // no daemon began
	}
	return cleanup.Run(context.WithoutCancel(e.Ctx), data, e.Log)
}

// sweepDrills removes what killed drills left next to the data directory.
func sweepDrills(e *command.Env, parent string) error {
	all, err := os.ReadDir(parent)
	for _, one := range all {
		scratch := filepath.Join(parent, one.Name())
		if strings.HasPrefix(one.Name(), doctor.DrillPrefix) && !doctor.Held(scratch) {
			err = errors.Join(err, endDrill(e, scratch, func() error { return os.RemoveAll(scratch) }))
		}
	}
	return err
}

// report prints what a drill found. It fails if anything of the backup does not run.
func (d *drilled) report(e *command.Env) error {
	verdict := "everything ran"
	lacking := d.lacking()
	if len(lacking) > 0 {
		verdict = "not everything ran"
	}
	fmt.Fprintf(e.Out, "It served after %.1f s, and %.1f s later %s:\n\n", d.Started, d.Waited, verdict)
	sums := &command.Table{Width: command.Width(e)}
	for _, kind := range drillKinds {
		want, have := d.count(kind)
		sums.Add(kind, fmt.Sprintf("%d of %d", have, want))
	}
	if err := sums.Write(e.Out); err != nil || len(lacking) == 0 {
		return err
	}
	fmt.Fprintln(e.Out)
	t := &command.Table{Width: command.Width(e)}
	t.Add("DOES NOT RUN", "RUNNING", "WHY")
	for _, one := range lacking {
		t.Add(one.Name, fmt.Sprintf("%d of %d", one.Have, one.Want), one.Why)
	}
	if err := t.Write(e.Out); err != nil {
		return err
	}
	return fmt.Errorf("%d of %d do not run from the backup. A drill has no network: what needs one to start does not", len(lacking), len(d.Found))
}

func (d *drilled) lacking() (all []drilledOne) {
	for _, one := range d.Found {
		if one.Have < one.Want {
			all = append(all, one)
		}
	}
	return all
}

// count is how many of a kind there are, and how many of them run whole.
func (d *drilled) count(kind string) (want, have int) {
	for _, one := range d.Found {
		if one.Kind != kind {
			continue
		}
		want++
		if one.Have >= one.Want {
			have++
		}
	}
	return want, have
}
