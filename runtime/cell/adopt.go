package cell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"cupola/runtime/lrp"
)

// adopt takes over what an earlier Run left: running containers continue,
// ended ones are reported and removed, incomplete ones are removed.
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
		if !known || !c.adoptOne(rec) {
			c.discard(ctx, guid)
		}
	}
	return c.applyPolicies(ctx)
}

// findings are the remains of containers, by GUID.
type findings struct {
	all     map[string][]string // where each was found
	records map[string]record
}

// survey looks everywhere for containers.
func (c *Cell) survey() (findings, error) {
	f := findings{all: map[string][]string{}, records: map[string]record{}}
	states, err := c.cfg.Containers.List()
	if err != nil {
		return f, fmt.Errorf("list containers: %w", err)
	}
	for _, s := range states {
		f.all[s.ID] = append(f.all[s.ID], "container")
	}
	roots, err := c.cfg.RootFS.List()
	if err != nil {
		return f, fmt.Errorf("list root filesystems: %w", err)
	}
	memories, err := c.cfg.Files.List()
	if err != nil {
		return f, fmt.Errorf("list memory of containers: %w", err)
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
	for _, id := range memories {
		f.all[id] = append(f.all[id], "memory")
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

// adoptOne adopts one container and reports whether there was one. A container
// from before a reboot ended with the machine, not by a fault: it is
// forgotten, and will be placed again.
func (c *Cell) adoptOne(rec record) bool {
	sameBoot := rec.Boot == c.boot
	ended := rec.Ending != nil && rec.Phase == lrp.PhaseExited
	switch {
	case rec.Reported || rec.StartedAt.IsZero():
		return false
	case ended && (sameBoot || rec.Collected):
	case !sameBoot:
		return false
	}
	i := newInstance(c, rec.Container)
	i.rec = rec
	i.frost.set(c.cfg.Containers.Frozen(rec.Container.GUID))
	live := i.rejoin
	if ended {
		live = i.resumeFinish
	}
	c.launch(i, live)
	return true
}

// rejoin continues the life of a container that an earlier daemon started, even if it
// has ended since.
func (i *instance) rejoin(ctx context.Context) {
	defer i.cell.forget(i)
	full, err := i.program()
	if err != nil {
		i.cell.cfg.Log.ErrorContext(ctx, "container was given up", "instance_guid", i.guid(), "err", err)
		i.finish(ctx, ending{Stopped: i.record().Stopped, Failed: true, Reasons: []string{errGone.Error()}})
		return
	}
	(&build{instance: i, full: full}).live(ctx)
}

// resumeFinish finishes what an earlier daemon had begun to finish.
func (i *instance) resumeFinish(ctx context.Context) {
	defer i.cell.forget(i)
	i.collectAndTakeDown(ctx)
}
