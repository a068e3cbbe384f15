package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cupola/runtime/container/starter"
	"cupola/runtime/users"
)

// cleanupTimeout bounds the removal of a container whose start went wrong.
const cleanupTimeout = 10 * time.Second

// reapAfter is how long a killed container has to end by itself.
const reapAfter = 100 * time.Millisecond

// errNotFound says that no container with that ID runs.
var errNotFound = errors.New("no such container")

// Engine runs containers. Its methods may be called at the same time.
type Engine struct {
	shared settings
	states string // one directory per container
	tree   cgroupTree
	log    *slog.Logger
	exits  *connector
	start  *launcher
	direct *launcher // starts containers' first processes without libcontainer; nil for a starter

	mu     sync.Mutex
	open   map[string]*process // inits that this Engine holds
	places map[string]string   // of containers' cgroups below the parent, by ID
}

// New prepares dir, helper and cgroups. It leaves running containers alone:
// List returns them, and every method works on them.
func New(cfg Config) (*Engine, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	tree, err := findCgroups(cfg.CgroupParent)
	if err != nil {
		return nil, err
	}
	if err := tree.ready(); err != nil {
		return nil, err
	}
	states := filepath.Join(cfg.Dir, "containers")
	if err := os.MkdirAll(states, 0o700); err != nil {
		return nil, err
	}
	// The mapped root user passes, to bind the shared mounts itself: libcontainer
	// would go back and forth with the daemon for each.
	if err := os.Chmod(cfg.Dir, 0o711); err != nil {
		return nil, err
	}
	if err := writeFilter(cfg.HelperDir); err != nil {
		return nil, err
	}
	start, direct, err := newLaunchers(cfg)
	if err != nil {
		return nil, err
	}
	sys, dev, helper := filepath.Join(cfg.Dir, "sys"), filepath.Join(cfg.Dir, "dev"), filepath.Join(cfg.Dir, "helper")
	if err := errors.Join(mountSys(sys), mountDev(dev), mountHelper(cfg.HelperDir, helper)); err != nil {
		return nil, err
	}
	var nofile, nproc, core unix.Rlimit
	if err := errors.Join(unix.Getrlimit(unix.RLIMIT_NOFILE, &nofile), unix.Getrlimit(unix.RLIMIT_NPROC, &nproc), unix.Getrlimit(unix.RLIMIT_CORE, &core)); err != nil {
		return nil, err
	}
	e := &Engine{
		shared: settings{
			ids: cfg.IDMap, helperDir: helper, sysDir: sys, devDir: dev,
			parent: cfg.CgroupParent, v2: tree.v2, nofile: nofile.Max, nproc: nproc.Max, core: core.Max,
		},
		states: states, tree: tree, log: cfg.Log, exits: newConnector(kernelRelease(), cfg.NoPIDFDInfo, cfg.Log), start: start, direct: direct, open: map[string]*process{}, places: map[string]string{},
	}
	return e, errors.Join(e.filterDevices(), e.setGroups(cfg.Groups))
}

// Start makes the container and returns when its process is executed. If it
// fails nothing of the container is left.
func (e *Engine) Start(ctx context.Context, spec Spec) (State, error) {
	if err := checkSpec(spec, e.shared.users(spec)); err != nil {
		return State{}, err
	}
	if err := ctx.Err(); err != nil {
		return State{}, err
	}
	dir := e.stateDir(spec.ID)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return State{}, fmt.Errorf("start container %s: %w", spec.ID, err)
	}
	init, err := e.run(ctx, spec)
	if err != nil {
		err = fmt.Errorf("start container %s: %w", spec.ID, err)
		return State{}, errors.Join(err, e.discard(ctx, spec.ID))
	}
	e.mu.Lock()
	e.open[spec.ID] = init
	e.mu.Unlock()
	return State{ID: spec.ID, PID: init.pid, StartTicks: init.ticks, Alive: true}, nil
}

// discard removes what a failed start has left, even if ctx has ended.
func (e *Engine) discard(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return e.Remove(ctx, id)
}

func (e *Engine) run(ctx context.Context, spec Spec) (*process, error) {
	ids := e.shared.users(spec)
	userNS, err := users.Namespace(users.Range(ids))
	if err != nil {
		return nil, err
	}
	defer userNS.Close()
	config := e.shared.libConfig(spec, openPath(userNS), e.cgroupNamespace(spec.ID))
	if e.direct == nil {
		if err := writeState(e.stateDir(spec.ID), newState{ID: spec.ID, Config: config}); err != nil {
			return nil, err
		}
	}
	place := e.setPlace(spec.Group, spec.ID)
	tasks, err := e.tree.create(place, spec.Limits)
	if err != nil {
		return nil, err
	}
	defer closeAll(tasks)
	e.chownStdio(ids.Base, spec.Process, spec.Stdout, spec.Stderr)
	command, stdio := e.command(spec.Process, tasks, spec.TLSPorts), Stdio{Out: spec.Stdout, Err: spec.Stderr}
	var init *process
	if e.direct != nil {
		init, err = e.launchDirect(ctx, newState{ID: spec.ID, Config: config}, command, stdio, tasks)
	} else {
		init, err = e.launch(ctx, starter.Request{ID: spec.ID, First: true, Cgroups: len(tasks), Process: command}, stdio, tasks)
	}
	return init, err
}

// cgroupNamespace is where a starter makes the container's cgroup namespace. On
// v2 libcontainer does, once the process is in its cgroup.
func (e *Engine) cgroupNamespace(id string) string {
	if e.tree.v2 {
		return ""
	}
	return starter.CgroupNamespace(e.states, id)
}

func (e *Engine) stateDir(id string) string { return filepath.Join(e.states, id) }

// Wait returns when the container's process, and so its init, has ended, also
// for one that another daemon started. It returns errNotFound if the container
// does not exist.
func (e *Engine) Wait(ctx context.Context, id string) (Exit, error) {
	init, err := e.find(id)
	if errors.Is(err, unix.ESRCH) {
		return Exit{OOM: e.tree.oomKilled(e.place(id))}, nil
	}
	if err != nil {
		return Exit{}, err
	}
	exit, err := init.wait(ctx)
	if err != nil {
		return Exit{}, err
	}
	exit.OOM = e.tree.oomKilled(e.place(id))
	return exit, nil
}

// find returns the container's init, adopting it first when another daemon
// started it. The error is errNotFound, or ESRCH when the container exists but has ended.
func (e *Engine) find(id string) (*process, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if init := e.open[id]; init != nil {
		return init, nil
	}
	rec, err := readState(e.stateDir(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("container %s: %w", id, errNotFound)
	}
	if err != nil {
		return nil, err
	}
	init, err := e.exits.open(rec.PID, rec.StartTicks)
	if err != nil {
		return nil, err
	}
	e.open[id] = init
	return init, nil
}

// Signal sends sig to the container's init, which forwards it to the process it
// was started with. SIGKILL ends all that runs in the container.
//
// A process that a daemon before inits started is PID 1 itself: the kernel drops
// signals that it does not catch, and SIGKILL has to follow.
func (e *Engine) Signal(id string, sig syscall.Signal) error {
	init, err := e.find(id)
	if err != nil {
		return err
	}
	return init.signal(sig)
}

// Stats reads the container's cgroups.
func (e *Engine) Stats(id string) (Stats, error) { return e.tree.stats(e.place(id)) }

// Remove kills all that runs in the container and deletes its cgroups and state.
// A container that does not exist is not an error.
func (e *Engine) Remove(ctx context.Context, id string) error {
	if !validID(id) {
		return fmt.Errorf("remove container %q: bad ID", id)
	}
	// A frozen process does not end.
	thawed := e.Thaw(id)
	// The cgroups are tried whatever holds the first process, and the state stays
	// while anything does: it is what a later Remove finds the container by.
	if err := errors.Join(thawed, e.kill(ctx, id), e.tree.remove(ctx, e.place(id))); err != nil {
		return fmt.Errorf("remove container %s: %w", id, err)
	}
	if err := os.RemoveAll(e.stateDir(id)); err != nil {
		return err
	}
	e.mu.Lock()
	delete(e.open, id)
	delete(e.places, id)
	e.mu.Unlock()
	return nil
}

// kill ends the init, and with it every process of its pid namespace.
func (e *Engine) kill(ctx context.Context, id string) error {
	init, err := e.find(id)
	if err != nil {
		return nil // nothing that this or a former Engine has recorded runs
	}
	if err := init.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	soon, cancel := context.WithTimeout(ctx, reapAfter)
	defer cancel()
	if init.waitEnd(soon) == nil {
		return nil
	}
	// It ends when all of its pid namespace are reaped, and their parent may be
	// this process.
	family.reap()
	return init.waitEnd(ctx)
}

// List returns every container that has left a trace: a state directory or a
// cgroup.
func (e *Engine) List() ([]State, error) {
	ids := e.tree.list()
	entries, err := os.ReadDir(e.states)
	if err != nil {
		return nil, err
	}
	states := map[string]State{}
	for _, id := range ids {
		states[id] = State{ID: id}
	}
	for _, entry := range entries {
		states[entry.Name()] = e.inspect(entry.Name())
	}
	return sortedStates(states), nil
}

func (e *Engine) inspect(id string) State {
	rec, err := readState(e.stateDir(id))
	if err != nil {
		return State{ID: id}
	}
	s := State{ID: id, PID: rec.PID, StartTicks: rec.StartTicks}
	init, err := e.find(id)
	s.Alive = err == nil && init.alive() && !rec.waiting
	return s
}

// Teardown removes what all containers share: three mounts in Dir and the
// parent cgroups. It fails while containers exist; Remove them first.
func (e *Engine) Teardown() error {
	for _, dir := range []string{e.shared.sysDir, e.shared.devDir, e.shared.helperDir} {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil && err != unix.EINVAL && err != unix.ENOENT {
			return fmt.Errorf("unmount %s: %w", dir, err)
		}
	}
	for _, group := range e.tree.allGroups() {
		if err := e.tree.rmdir(group); err != nil {
			return err
		}
	}
	return e.tree.rmdir("")
}
