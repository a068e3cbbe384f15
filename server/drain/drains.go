package drain

import (
	"bytes"
	"context"
	"sync"

	"cupola/runtime/egress"
	"cupola/runtime/fault"
)

// Config is what Drains need.
type Config struct {
	// Report says in an app's log what became of its drain.
	Report func(appGUID, text string)
	// Where says where drains may be.
	Where egress.Guard
}

// Drains are the drains of all apps.
type Drains struct {
	Config
	dialer

	mu      sync.RWMutex
	workers map[string][]*worker // by app GUID
	running sync.WaitGroup
}

// New has no drains yet.
func New(c Config) *Drains {
	return &Drains{Config: c, dialer: dialer{where: c.Where}, workers: map[string][]*worker{}}
}

// Set makes all the drains that there are now. Those that stay keep their
// connection and their queue.
func (d *Drains) Set(all []Drain) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := map[Drain]*worker{}
	for _, list := range d.workers {
		for _, w := range list {
			old[w.to] = w
		}
	}
	d.workers = map[string][]*worker{}
	seen := map[Drain]bool{}
	for _, to := range all {
		if seen[to] {
			continue
		}
		seen[to] = true
		w := old[to]
		if delete(old, to); w == nil {
			w = d.start(to)
		}
		d.workers[to.AppGUID] = append(d.workers[to.AppGUID], w)
	}
	for _, w := range old {
		w.stop()
	}
}

func (d *Drains) start(to Drain) *worker {
	ctx, stop := context.WithCancel(context.Background())
	w := &worker{Drains: d, to: to, queue: make(chan Message, queueSize), stop: stop}
	for _, f := range []func(context.Context){w.run, w.tell} {
		run := fault.Loop(ctx, "drain", func(ctx context.Context) error { f(ctx); return nil })
		d.running.Go(fault.Func("drain", func() { _ = run() }))
	}
	return w
}

// Failing lists the drains that take no messages now.
func (d *Drains) Failing() (all []Failure) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, workers := range d.workers {
		for _, w := range workers {
			w.mu.Lock()
			if !w.failure.Since.IsZero() {
				all = append(all, w.failure)
			}
			w.mu.Unlock()
		}
	}
	return all
}

// Append gives a message to the drains of its app, and keeps nothing of the
// caller's but the tags, which are not to be changed after. It does not wait.
func (d *Drains) Append(m Message) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	workers := d.workers[m.AppGUID]
	if len(workers) == 0 {
		return
	}
	m.Text = bytes.Clone(m.Text)
	for _, w := range workers {
		w.put(m)
	}
}

// Close ends all drains and waits for them. What is still queued is lost.
func (d *Drains) Close() {
	d.Set(nil)
	d.running.Wait()
}
