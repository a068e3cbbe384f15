package cell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cupola/runtime/container"
	"cupola/runtime/lrp"
)

// adopt takes over what an earlier Run left: what runs goes on, what has ended
// is told and cleared away, what was half made is cleared away.
func (c *Cell) adopt(ctx context.Context) error {
	found, err := c.survey()
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.ctx = ctx
	c.mu.Unlock()
	for guid := range found.all {
		rec, known := found.records[guid]
		if !known || !c.adoptOne(rec, found.alive[guid]) {
			c.discard(ctx, guid)
		}
	}
	return c.applyPolicies(ctx)
}

// findings is what there is of containers, by GUID.
type findings struct {
	all     map[string][]string // where each was found
	alive   map[string]bool
	records map[string]record
}

// survey looks everywhere for containers.
func (c *Cell) survey() (findings, error) {
	f := findings{all: map[string][]string{}, alive: map[string]bool{}, records: map[string]record{}}
	states, err := c.cfg.Containers.List()
	if err != nil {
		return f, fmt.Errorf("list containers: %w", err)
	}
	for _, s := range states {
		f.all[s.ID] = append(f.all[s.ID], "container")
		f.alive[s.ID] = s.Alive
	}
	roots, err := c.cfg.RootFS.List()
	if err != nil {
		return f, fmt.Errorf("list root filesystems: %w", err)
	}
	networks, err := c.cfg.Network.List()
	if err != nil {
		return f, fmt.Errorf("list networks: %w", err)
	}
	for _, id := range roots {
		f.all[id] = append(f.all[id], "root filesystem")
	}
	for _, id := range networks {
		f.all[id] = append(f.all[id], "network")
	}
	return f, c.surveyState(f)
}

// surveyState reads the state directories. A record that cannot be read was
// never finished: its container had not begun.
func (c *Cell) surveyState(f findings) error {
	entries, err := os.ReadDir(c.cfg.Dir)
	if err != nil {
		return fmt.Errorf("list container states: %w", err)
	}
	for _, e := range entries {
		guid := e.Name()
		f.all[guid] = append(f.all[guid], "state directory")
		rec, err := readRecord(filepath.Join(c.cfg.Dir, guid))
		if err == nil && rec.Container.GUID == guid {
			f.records[guid] = rec
		}
	}
	return nil
}

// adoptOne takes one container over and reports whether there was something to
// take. A container of before the machine came up ended with it, and nobody is
// to blame: it is forgotten, and will be placed anew.
func (c *Cell) adoptOne(rec record, alive bool) bool {
	sameBoot := rec.Boot == c.boot
	settled := rec.Ending != nil && rec.Phase == lrp.PhaseExited
	switch {
	case rec.Told || rec.StartedAt.IsZero():
		return false
	case settled && (sameBoot || rec.Collected):
	case !sameBoot:
		return false
	}
	i := newInstance(c, rec.Container)
	i.rec = rec
	live := i.rejoin
	switch {
	case settled:
		live = i.resettle
	case !alive:
		live = i.bury
	}
	c.launch(i, live)
	return true
}

// rejoin goes on living the life of a container that an earlier daemon started.
func (i *instance) rejoin(ctx context.Context) {
	defer i.cell.forget(i)
	i.refollow(ctx)
	for _, s := range i.record().Sidecars {
		i.sidecars = append(i.sidecars, foundProcess(s))
	}
	i.live(ctx)
}

func (i *instance) refollow(ctx context.Context) {
	out, err := i.cell.follow(i)
	if err != nil {
		i.cell.cfg.Log.ErrorContext(ctx, "output was not found", "instance_guid", i.guid(), "err", err)
		out = noOutput{}
	}
	i.setOutput(out)
}

// bury ends the life of a container that ended while no daemon looked.
func (i *instance) bury(ctx context.Context) {
	defer i.cell.forget(i)
	i.refollow(ctx)
	out := i.output()
	out.Start()
	out.Drain()
	var end ending
	if rec := i.record(); rec.Ending != nil {
		end = *rec.Ending
	}
	exit, err := i.cell.cfg.Containers.Wait(ctx, i.guid())
	if err != nil {
		i.cell.cfg.Log.InfoContext(ctx, "exit status was lost", "instance_guid", i.guid(), "err", err)
	}
	end.Exit = exit
	if !end.Stopped && len(end.Reasons) == 0 {
		end.Reasons = i.exitReason(exit)
	}
	i.finish(ctx, end)
}

// resettle finishes what an earlier daemon had begun to finish.
func (i *instance) resettle(ctx context.Context) {
	defer i.cell.forget(i)
	i.settle(ctx)
}

// noOutput stands for output that cannot be read.
type noOutput struct{}

func (noOutput) Start()       {}
func (noOutput) Drain()       {}
func (noOutput) Close()       {}
func (noOutput) Rate() uint64 { return 0 }

// foundInterval is how often a process that somebody else started is looked
// at.
const foundInterval = time.Second

// foundProcess is a sidecar that an earlier daemon started.
type foundProcess sidecarRecord

func (p foundProcess) ID() int { return p.PID }

// Wait cannot tell the exit status: the kernel tells it to the parent alone.
func (p foundProcess) Wait(ctx context.Context) (container.Exit, error) {
	tick := time.NewTicker(foundInterval)
	defer tick.Stop()
	for p.alive() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return container.Exit{}, context.Cause(ctx)
		}
	}
	return container.Exit{}, nil
}

func (p foundProcess) alive() bool {
	return p.StartTicks != 0 && startTicks(p.PID) == p.StartTicks
}

// errEnded says that there is no process to signal.
var errEnded = errors.New("process has ended")
