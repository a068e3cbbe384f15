// Package trial starts one container of each of the machine's own stacks, as the daemon's cell does: on a disk with a quota,
// with its own users and network. It needs no daemon, and disturbs none.
package trial

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"cupola/rootfs"
	"cupola/rootfs/registry"
	"cupola/runtime/artifact"
	"cupola/runtime/cell"
	"cupola/runtime/container"
	"cupola/runtime/fault"
	"cupola/runtime/guid"
	"cupola/runtime/identity"
	"cupola/runtime/lrp"
	"cupola/server/admin/cleanup"
	"cupola/server/datadir"
)

// timeout bounds all containers.
const timeout = 20 * time.Second

// errLate is the error of a container that has not ended after timeout.
var errLate = fmt.Errorf("it did not start and end within %s", timeout)

// Run starts a container of each stack in a new data directory, which it makes below dir, with an engine of that kind. It
// returns what went wrong by the stack's name; nil where nothing did. The error is of what all containers need. Nothing stays in the kernel.
func Run(ctx context.Context, dir string, kind container.Kind) (outcomes map[string]error, err error) {
	log := slog.New(slog.DiscardHandler)
	d, err := datadir.Open(filepath.Join(dir, "data"), log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := d.CheckReachable(); err != nil {
		return nil, err
	}
	roots, err := d.Roots(registry.Config{}, d.Egress())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, roots.Close()) }()
	r, err := open(ctx, d, roots, kind)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Teardown()) }()
	return try(ctx, r, log)
}

// open opens what containers need of the machine.
func open(ctx context.Context, d *datadir.Dir, roots *rootfs.Store, kind container.Kind) (r *cleanup.Runtime, err error) {
	r = &cleanup.Runtime{Dir: d, Roots: roots, Kind: kind}
	return r, r.Open(ctx)
}

// try runs the containers, all at once.
func try(ctx context.Context, r *cleanup.Runtime, log *slog.Logger) (map[string]error, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errLate)
	defer cancel()
	t := &results{ended: map[string]lrp.Exit{}, said: map[string]string{}, changed: make(chan struct{}, 1)}
	c, err := newCell(r, t, log)
	if err != nil {
		return nil, err
	}
	live, stop := context.WithCancel(context.WithoutCancel(ctx))
	stopped := make(chan error, 1)
	fault.Go("trial", func() { stopped <- fault.Guard("trial", func() error { return c.Run(live) }) })
	names := map[string]string{} // of stacks, by the container's GUID
	for _, st := range r.Roots.Stacks.All() {
		id := guid.New()
		names[id] = st.Name
		c.Start(taskOf(id, st.Name))
	}
	t.wait(ctx, len(names))
	stop()
	outcomes := map[string]error{}
	for id, name := range names {
		outcomes[name] = t.errorOf(ctx, id)
	}
	return outcomes, <-stopped
}

func newCell(r *cleanup.Runtime, t *results, log *slog.Logger) (*cell.Cell, error) {
	identities, err := identity.Open(r.Dir.Path("identity"), identity.DefaultLife)
	if err != nil {
		return nil, err
	}
	artifacts, err := artifact.New(artifact.Config{Dir: r.Dir.Path("artifacts")})
	if err != nil {
		return nil, err
	}
	return cell.New(cell.Config{Dir: r.Dir.Path("cell"), Presence: lrp.Cell{ID: "doctor", MemoryMB: 1024}, Containers: cell.Engine(r.Containers), Network: r.Network,
		RootFS: r.Roots, Images: r.Roots.Images, Files: r.Files, Users: r.Users, Artifacts: artifacts, Identities: identities, Volumes: r.Volumes,
		Blob: func(string) (string, error) { return "", os.ErrNotExist },
		Keep: func(context.Context, string, *os.File, string) (lrp.Blob, error) {
			return lrp.Blob{}, errors.ErrUnsupported
		},
		Logs: t.line, Events: t.event, Log: log})
}

// taskOf is a task that runs the shell of a stack.
func taskOf(id, stack string) lrp.Container {
	return lrp.Container{GUID: id, Kind: lrp.KindTask, RunInfo: lrp.RunInfo{
		RootFS: "preloaded:" + stack, Action: lrp.Run{Path: "/bin/sh", Args: []string{"-c", "exit 0"}}.Action(),
		MemoryMB: 64, DiskMB: 64, CPUWeight: 1, LogRateLimitByte: -1, Log: lrp.LogTarget{GUID: id, Source: "TRIAL"},
	}}
}

// results are what the cell reports of the containers.
type results struct {
	mu      sync.Mutex
	ended   map[string]lrp.Exit
	said    map[string]string // what the cell said last of why a container was not created
	changed chan struct{}
}

// line keeps the cause, which the cell says in the log only.
func (t *results) line(l lrp.LogLine) {
	_, cause, found := strings.Cut(string(l.Text), "failed to create container for instance "+l.Target.GUID+": ")
	if found {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.said[l.Target.GUID] = cause
	}
}

func (t *results) event(e lrp.Event) {
	if e.Type != lrp.EventExited {
		return
	}
	t.mu.Lock()
	t.ended[e.GUID] = e.Exit
	t.mu.Unlock()
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// wait returns when n containers have ended, or ctx has.
func (t *results) wait(ctx context.Context, n int) {
	for {
		t.mu.Lock()
		ended := len(t.ended)
		t.mu.Unlock()
		if ended >= n {
			return
		}
		select {
		case <-t.changed:
		case <-ctx.Done():
			return
		}
	}
}

func (t *results) errorOf(ctx context.Context, id string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	exit, ended := t.ended[id]
	switch {
	case !ended:
		return context.Cause(ctx)
	case t.said[id] != "":
		return errors.New(t.said[id])
	case exit.Failed || exit.Code != 0:
		return fmt.Errorf("its shell ended with %q", exit.Reason)
	}
	return nil
}
