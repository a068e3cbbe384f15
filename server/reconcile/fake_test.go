package reconcile

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"cupola/runtime/lrp"
)

// fakeCell is a cell whose containers do what the test says.
type fakeCell struct {
	presence lrp.Cell
	event    func(lrp.Event)
	freed    func()

	mu         sync.Mutex
	containers map[string]*fakeContainer
	started    []lrp.Container
	over       string // what went over a limit, or was there twice
}

type fakeContainer struct {
	lrp.ContainerStatus
	spec lrp.Container
}

func newFakeCell(id string) *fakeCell {
	return &fakeCell{presence: lrp.Cell{ID: id, MemoryMB: 4096, DiskMB: 65536, Containers: 100, RootFSes: []string{"minifs"}},
		containers: map[string]*fakeContainer{}, event: func(lrp.Event) {}, freed: func() {}}
}

func (c *fakeCell) Presence() lrp.Cell {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.presence
}

// size changes the memory of the cell.
func (c *fakeCell) size(memoryMB int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.presence.MemoryMB = memoryMB
}

func (c *fakeCell) Start(spec lrp.Container) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.containers[spec.GUID] != nil {
		return
	}
	c.containers[spec.GUID] = &fakeContainer{spec: spec, ContainerStatus: lrp.ContainerStatus{GUID: spec.GUID, Kind: spec.Kind,
		ProcessGUID: spec.ProcessGUID, Index: spec.Index, Phase: lrp.PhaseCreating, MemoryMB: spec.MemoryMB, DiskMB: spec.DiskMB, LogTags: spec.Log.Tags}}
	c.started = append(c.started, spec)
	c.check()
}

// check notes what must never be. What has exited still takes its room, but may
// have a successor: the loop can act on the end before the cell forgets it.
func (c *fakeCell) check() {
	memory, live := 0, map[lrp.Key]int{}
	for _, f := range c.containers {
		memory += f.MemoryMB
		if f.Kind == lrp.KindInstance && f.Phase != lrp.PhaseExited {
			live[lrp.Key{ProcessGUID: f.ProcessGUID, Index: f.Index}]++
		}
	}
	if memory > c.presence.MemoryMB {
		c.over = fmt.Sprintf("%d MB of memory", memory)
	}
	for k, n := range live {
		if n > 1 {
			c.over = fmt.Sprintf("%d instances of %v", n, k)
		}
	}
}

func (c *fakeCell) Stop(guid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.containers[guid]; f != nil && f.Phase != lrp.PhaseExited {
		f.Phase, f.Ready = lrp.PhaseStopping, false
	}
}

func (c *fakeCell) SetFiles(guid string, files []lrp.File) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.containers[guid]; f != nil {
		f.FilesDigest = lrp.FilesDigest(files)
	}
	return nil
}

func (c *fakeCell) SetLogTags(guid string, tags map[string]string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.containers[guid]; f != nil {
		f.LogTags = tags
	}
	return nil
}

func (c *fakeCell) Containers() []lrp.ContainerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []lrp.ContainerStatus
	for _, f := range c.containers {
		list = append(list, f.ContainerStatus)
	}
	slices.SortFunc(list, func(a, b lrp.ContainerStatus) int { return cmpString(a.GUID, b.GUID) })
	return list
}

func cmpString(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (c *fakeCell) Stats(string) (lrp.Stats, bool) { return lrp.Stats{}, false }

// take gives a container and changes it under the lock.
func (c *fakeCell) take(guid string, f func(*fakeContainer)) *fakeContainer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.containers[guid]
	if t != nil && f != nil {
		f(t)
	}
	return t
}

func (f *fakeContainer) event(t lrp.EventType) lrp.Event {
	return lrp.Event{Type: t, GUID: f.GUID, Kind: f.Kind, Key: lrp.Key{ProcessGUID: f.ProcessGUID, Index: f.Index}, At: time.Now(), Address: f.Address}
}

// run makes an instance run and be ready.
func (c *fakeCell) run(guid string) {
	f := c.take(guid, func(f *fakeContainer) { f.Phase, f.Address, f.Ready = lrp.PhaseRunning, "10.0.0.9", true })
	if f == nil {
		return
	}
	c.event(f.event(lrp.EventRunning))
	c.event(f.event(lrp.EventReady))
}

// exit ends a container as a real cell does: it forgets it when the event was
// taken.
func (c *fakeCell) exit(guid string, e lrp.Event) {
	f := c.take(guid, func(f *fakeContainer) {
		e.Exit.Stopped = e.Exit.Stopped || f.Phase == lrp.PhaseStopping
		f.Phase = lrp.PhaseExited
	})
	if f == nil {
		return
	}
	told := f.event(lrp.EventExited)
	told.Exit, told.Result, told.Outputs = e.Exit, e.Result, e.Outputs
	c.event(told)
	c.lose(guid)
	c.freed()
}

func (c *fakeCell) crash(guid, reason string) {
	c.exit(guid, lrp.Event{Exit: lrp.Exit{Code: 1, Failed: true, Reason: reason}})
}

// lose forgets a container without a word.
func (c *fakeCell) lose(guid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.containers, guid)
}

// guids are those of the containers in a phase.
func (c *fakeCell) guids(phases ...lrp.Phase) []string {
	var list []string
	for _, s := range c.Containers() {
		if slices.Contains(phases, s.Phase) {
			list = append(list, s.GUID)
		}
	}
	return list
}

func (c *fakeCell) sane(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over != "" {
		t.Fatalf("the cell had %s", c.over)
	}
}

// ready reports whether an instance is ready.
func (c *fakeCell) ready(guid string, is bool) {
	f := c.take(guid, func(f *fakeContainer) { f.Ready = is })
	if f == nil {
		return
	}
	kind := lrp.EventNotReady
	if is {
		kind = lrp.EventReady
	}
	c.event(f.event(kind))
}
