package cell

import (
	"sync"
	"time"

	"cupola/runtime/lrp"
)

// maxSteps bounds the steps of a trace: programs of the BBS may have any number.
const maxSteps = 100

// trace collects the steps of a container for Config.Trace. Nil, as where nothing is traced, collects nothing.
type trace struct {
	report func(lrp.Trace)

	mu sync.Mutex
	lrp.Trace
}

// newTrace is the trace of a container that begins now.
func (c *Cell) newTrace(spec lrp.Container) *trace {
	if c.cfg.Trace == nil {
		return nil
	}
	report := c.cfg.Trace(spec)
	if report == nil {
		return nil
	}
	return &trace{report: report, Trace: lrp.Trace{Began: time.Now()}}
}

// step adds a step that is over.
func (t *trace) step(name, detail string, began time.Time, failed bool) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.report != nil && len(t.Steps) < maxSteps {
		t.Steps = append(t.Steps, lrp.Step{Name: name, Detail: detail, Began: began, Ended: time.Now(), Failed: failed})
	}
}

// end reports the trace, once.
func (t *trace) end(failure string, result []byte) {
	if t == nil {
		return
	}
	t.mu.Lock()
	report, all := t.report, t.Trace
	t.report = nil
	t.mu.Unlock()
	if report != nil {
		all.Ended, all.Failure, all.Result = time.Now(), failure, result
		report(all)
	}
}
