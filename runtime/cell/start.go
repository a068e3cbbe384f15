package cell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"syscall"
	"time"

	"cupola/runtime/container"
	"cupola/runtime/contract"
	"cupola/runtime/fault"
	"cupola/runtime/lrp"
)

// running is a process with its output.
type running struct {
	Process
	out output
}

// process starts the process of a step, or finds the one that an earlier
// daemon started.
func (p *performer) process(ctx context.Context, at string, r *lrp.Run, source string) (running, error) {
	if p.captured != nil {
		return p.startCaptured(ctx, r)
	}
	if s := p.step(at); s.PID != 0 {
		return p.findProcess(ctx, at, s, r, source), nil
	}
	if p.step(at).Launched {
		return running{}, failure{daemonEnded}
	}
	p.first(at)
	out, err := p.openOutput(at, r, source)
	if err != nil {
		return running{}, p.startError(err)
	}
	out.Start()
	p.sayLimits(r)
	proc, err := p.startStep(ctx, at, r)
	if err != nil {
		out.Close()
		if ctx.Err() != nil || errors.Is(err, errCancelled) {
			return running{}, errCancelled
		}
		return running{}, p.startError(err)
	}
	return running{proc, out}, nil
}

func (p *performer) findProcess(ctx context.Context, at string, s stepRecord, r *lrp.Run, source string) running {
	out, err := p.cell.follow(p.instance, at, sourceOf(r, source))
	if err != nil {
		p.cell.cfg.Log.ErrorContext(ctx, "output was not found", "instance_guid", p.guid(), "err", err)
		out = noOutput{}
	}
	out.Start()
	if at == p.init {
		return running{firstProcess{p.cell, p.guid(), s.PID}, out}
	}
	return running{p.cell.cfg.Containers.Found(p.guid(), s.PID, s.Ticks), out}
}

// sourceOf returns the source of a process' output, or "" if it is discarded.
func sourceOf(r *lrp.Run, source string) string {
	if r.Quiet {
		return ""
	}
	return source
}

// startError says that a process did not start.
func (b *build) startError(err error) error {
	if b.full.Kind == lrp.KindTask {
		return failure{"failed to run container: " + err.Error()}
	}
	return failure{"failed to create container: process: " + err.Error()}
}

// startStep starts the process of a step: the container's first, or one next to
// it.
func (p *performer) startStep(ctx context.Context, at string, r *lrp.Run) (Process, error) {
	u, err := p.lookUp(r.User)
	if err != nil {
		return nil, err
	}
	stdout, stderr, err := p.openPipes(at)
	if err != nil {
		return nil, err
	}
	defer closeAll(stdout, stderr)
	if at == p.init {
		return p.startFirst(ctx, at, p.processOf(u, r), stdout, stderr)
	}
	select {
	case <-p.up:
	case <-ctx.Done():
		return nil, errCancelled
	}
	stdin, err := p.introduce(ctx, r.Peers)
	if err != nil {
		return nil, err
	}
	if stdin != nil {
		defer stdin.Close()
	}
	p.note(at, func(s *stepRecord) { s.Launched = true })
	proc, err := p.cell.cfg.Containers.Exec(ctx, p.guid(), p.processOf(u, r), container.Stdio{In: stdin, Out: stdout, Err: stderr})
	if err != nil {
		p.note(at, func(s *stepRecord) { s.Launched = false })
	}
	switch {
	case err != nil && p.firstEnds():
		return nil, errCancelled // there is nothing to start it in
	case err != nil:
		return nil, err
	}
	p.note(at, func(s *stepRecord) { s.PID, s.Ticks = proc.ID(), proc.Ticks() })
	return proc, nil
}

// startFirst starts the container with the process of a step.
func (p *performer) startFirst(ctx context.Context, at string, first container.Process, stdout, stderr *os.File) (Process, error) {
	spec := p.container(first)
	spec.Stdout, spec.Stderr = stdout, stderr
	state, err := p.startContainer(ctx, spec)
	if err != nil {
		return nil, err
	}
	err = p.save(func(r *record) {
		r.Phase, r.StartedAt, r.User, r.Programs = lrp.PhaseStarting, time.Now(), loginOf(p.user), contract.ProgramDir
		r.step(at).PID = state.PID
	})
	if err != nil {
		return nil, err
	}
	p.isUp()
	return firstProcess{p.cell, p.guid(), state.PID}, nil
}

// startIdle starts the container with its init alone, unless it runs.
func (p *performer) startIdle(ctx context.Context) error {
	if p.record().StartedAt.IsZero() {
		idle := container.Process{Cwd: "/", Env: p.environment(p.user, &lrp.Run{}), UID: p.user.UID, GID: p.user.GID, Groups: p.user.Groups, Nofile: defaultNofile}
		state, err := p.startContainer(ctx, p.container(idle))
		if err == nil {
			err = p.save(func(r *record) {
				r.Phase, r.StartedAt, r.User, r.Programs = lrp.PhaseStarting, time.Now(), loginOf(p.user), contract.ProgramDir
				r.step("idle").PID = state.PID
			})
		}
		if err != nil {
			return p.startError(err)
		}
		p.isUp()
	}
	fault.Go("cell", func() {
		if _, err := p.cell.cfg.Containers.Wait(p.life, p.guid()); err == nil {
			p.isDown()
		}
	})
	return nil
}

// container is what the container is made of.
func (p *performer) container(first container.Process) container.Spec {
	p.setEntry(first)
	spec := container.Spec{
		ID: p.guid(), Rootfs: p.root.Path, Hostname: hostname(p.guid()), Process: first, NetNS: p.net.NetNS, TLSPorts: p.tlsPorts(), Lifecycle: p.full.Lifecycle,
		Users: container.IDMap(p.users()), Group: p.cell.part(p.cellID()).group(),
		Limits: container.Limits{
			MemoryBytes: int64(p.full.MemoryMB) << 20,
			CPUShares:   cpuShares(p.full.CPUWeight),
			CPUs:        p.full.CPUs,
			Pids:        int64(p.maxPids()),
		},
	}
	for _, m := range p.root.Binds {
		spec.Mounts = append(spec.Mounts, container.Mount{Source: m.Source, Destination: m.Destination, ReadOnly: m.ReadOnly, Recursive: true})
	}
	spec.Mounts = append(spec.Mounts, p.dependencyMounts()...)
	spec.Mounts = append(spec.Mounts, p.volumes...)
	spec.Mounts = append(spec.Mounts, p.memoryMounts()...)
	return spec
}

// dependencyMounts show the cached dependencies, which are the lowest layers,
// read-only, except for those that may be written to in the root filesystem.
func (b *build) dependencyMounts() []container.Mount {
	var mounts []container.Mount
	for n, d := range b.full.CachedDependencies {
		if !d.Writable {
			mounts = append(mounts, container.Mount{Source: b.root.Layers[n], Destination: path.Clean("/" + d.To), ReadOnly: true})
		}
	}
	return mounts
}

// startContainer waits for its turn.
func (p *performer) startContainer(ctx context.Context, spec container.Spec) (container.State, error) {
	release, err := p.cell.acquireCreateSlot(ctx)
	if err != nil {
		return container.State{}, err
	}
	defer release()
	began := time.Now()
	state, err := p.cell.cfg.Containers.Start(ctx, spec)
	p.trace.step("processes", "", began, err != nil)
	return state, err
}

// acquireCreateSlot waits for one of the slots in which containers are made.
func (c *Cell) acquireCreateSlot(ctx context.Context) (release func(), err error) {
	select {
	case c.slots <- struct{}{}:
		return func() { <-c.slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// firstProcess is the first process of a container.
type firstProcess struct {
	cell *Cell
	guid string
	pid  int
}

func (f firstProcess) ID() int       { return f.pid }
func (f firstProcess) Ticks() uint64 { return 0 }

func (f firstProcess) Wait(ctx context.Context) (container.Exit, error) {
	return f.cell.cfg.Containers.Wait(ctx, f.guid)
}

// openOutput creates the FIFOs of a process and opens their reading ends
// before it can write to them: a FIFO that no process has open loses its
// content.
func (p *performer) openOutput(at string, r *lrp.Run, source string) (output, error) {
	if err := p.makePipes(at); err != nil {
		return nil, fmt.Errorf("make output pipes: %w", err)
	}
	return p.cell.follow(p.instance, at, sourceOf(r, source))
}

func (f firstProcess) Signal(sig syscall.Signal) error {
	return f.cell.cfg.Containers.Signal(f.guid, sig)
}
