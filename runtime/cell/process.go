package cell

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"cupola/runtime/container"
	"cupola/runtime/lrp"
)

// defaultNofile is CF's limit of open files for apps.
const defaultNofile = 16384

// startProcess starts the action's process, and writes down that it runs.
func (b *build) startProcess(ctx context.Context) error {
	stdout, stderr, err := b.openPipes(mainPipe)
	if err != nil {
		return err
	}
	defer closeAll(stdout, stderr)
	spec := container.Spec{
		ID: b.guid(), Rootfs: b.root.Path, Hostname: hostname(b.guid()),
		Process: b.process(b.user, b.flat.Run), NetNS: b.net.NetNS,
		Limits: container.Limits{
			MemoryBytes: int64(b.full.MemoryMB) << 20,
			CPUShares:   cpuShares(b.full.CPUWeight),
			Pids:        int64(b.maxPids()),
		},
		Group:  b.cell.part(b.cellID()).group(),
		Stdout: stdout, Stderr: stderr,
	}
	b.setEntry(spec.Process)
	for _, m := range b.root.Binds {
		spec.Mounts = append(spec.Mounts, container.Mount(m))
	}
	if _, err := b.cell.cfg.Containers.Start(ctx, spec); err != nil {
		return b.startError(err)
	}
	return nil
}

// startSidecars starts the other processes, which makes the container complete.
func (b *build) startSidecars(ctx context.Context) error {
	var started []sidecarRecord
	for n, s := range b.flat.Sidecars {
		p, err := b.startSidecar(ctx, n, s)
		if err != nil {
			return fmt.Errorf("%s: %w", b.sidecarSource(n), err)
		}
		b.sidecars = append(b.sidecars, p)
		started = append(started, sidecarRecord{PID: p.ID(), StartTicks: startTicks(p.ID())})
	}
	return b.save(func(r *record) {
		r.Phase, r.StartedAt, r.Sidecars, r.User = lrp.PhaseStarting, time.Now(), started, loginOf(b.user)
	})
}

func (b *build) startSidecar(ctx context.Context, n int, run lrp.Run) (Process, error) {
	u, err := b.lookUp(run.User)
	if err != nil {
		return nil, err
	}
	stdout, stderr, err := b.openPipes(sidecarPipe(n))
	if err != nil {
		return nil, err
	}
	defer closeAll(stdout, stderr)
	stdio := container.Stdio{Out: stdout, Err: stderr}
	return b.cell.cfg.Containers.Exec(ctx, b.guid(), b.process(u, run), stdio)
}

func (b *build) startError(err error) error {
	if b.full.Kind == lrp.KindTask {
		return &blame{"failed to run container: " + err.Error(), err}
	}
	return err
}

// process is run as u runs it. Garden starts a process without a directory in
// its user's home.
func (b *build) process(u user, run lrp.Run) container.Process {
	nofile := run.Nofile
	if nofile == 0 {
		nofile = defaultNofile
	}
	cwd := run.Dir
	if !path.IsAbs(cwd) {
		cwd = path.Join(u.Home, cwd)
	}
	return container.Process{
		Args: append([]string{run.Path}, run.Args...), Env: b.environment(u, run), Cwd: cwd,
		UID: u.UID, GID: u.GID, Groups: u.Groups, Nofile: nofile,
	}
}

func (b *build) maxPids() int {
	if b.full.MaxPids > 0 {
		return b.full.MaxPids
	}
	return b.cell.cfg.MaxPids
}

// cpuShares are Diego's for a weight; 0 for no weight.
func cpuShares(weight int) uint64 { return uint64(1024 * max(weight, 0) / 100) }

// mainPipe and sidecarPipe name the FIFOs of a process: <name>stdout and
// <name>stderr in the state directory.
const mainPipe = ""

func sidecarPipe(n int) string { return fmt.Sprintf("sidecar-%d-", n) }

// pipes names the FIFOs of all processes, the main one first.
func (i *instance) pipes() []string {
	names := []string{mainPipe}
	for n := range i.record().Plan.Sidecars {
		names = append(names, sidecarPipe(n))
	}
	return names
}

func (i *instance) stdoutPath(pipe string) string { return filepath.Join(i.dir, pipe+"stdout") }
func (i *instance) stderrPath(pipe string) string { return filepath.Join(i.dir, pipe+"stderr") }

func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close()
	}
}
