package cell

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"cupola/runtime/fault"
	"cupola/runtime/lrp"
)

// ErrBusy says that a container is not frozen now: it does not run yet or any longer, or
// a session is open in it.
var ErrBusy = errors.New("the container does not run, or a session is open in it")

// freezeTime is how long processes may take to stop where they are: one that waits for a
// disk does not until the disk answers.
const freezeTime = 2 * time.Second

// Freeze stops the processes of a running instance where they are, until Thaw, Stop or
// Attach; meanwhile its health is not checked. It outlives the daemon: the next one adopts
// the container as frozen. A frozen container stays as it is.
func (c *Cell) Freeze(ctx context.Context, guid string) error {
	<-c.adopted
	i := c.instance(guid)
	if i == nil {
		return errNotRunning
	}
	thawed, err := i.freeze(ctx)
	if thawed != nil {
		fault.Go("cell", func() { c.reclaim(i, thawed) })
	}
	return err
}

// Thaw resumes the processes of a container, and checks its health again. A container that
// is not frozen or is gone is not an error.
func (c *Cell) Thaw(guid string) error {
	<-c.adopted
	if i := c.instance(guid); i != nil {
		return i.thaw()
	}
	return nil
}

// reclaimAfter is how long a container is frozen before its memory is given back: one that
// is thawed soon would have to read its program again.
const reclaimAfter = time.Minute

// reclaim gives back memory of a container that stays frozen, one container after the other.
func (c *Cell) reclaim(i *instance, thawed <-chan struct{}) {
	select {
	case <-time.After(reclaimAfter):
	case <-thawed:
		return
	case <-c.live().Done():
		return
	}
	c.reclaiming.Lock()
	defer c.reclaiming.Unlock()
	if i.frost.isFrozen() {
		c.cfg.Containers.Reclaim(i.guid())
	}
}

// live is the context of Run, which has adopted.
func (c *Cell) live() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ctx
}

// frost holds whether a container is frozen.
type frost struct {
	turn sync.Mutex // held while the container is frozen or thawed

	mu       sync.Mutex
	frozen   bool            // or being frozen
	changed  context.Context // ends when that changes
	change   func()          // ends it
	sessions int
	checks   sync.WaitGroup // health checks; begun under mu, and not while frozen
}

func newFrost() *frost {
	f := &frost{}
	f.changed, f.change = context.WithCancel(context.Background())
	return f
}

func (f *frost) isFrozen() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.frozen
}

// next is closed when the container is frozen or thawed the next time.
func (f *frost) next() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed.Done()
}

// set notes that the container is frozen, or not; false if a session is open in it.
func (f *frost) set(frozen bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if frozen && f.sessions > 0 {
		return false
	}
	if f.frozen != frozen {
		f.frozen = frozen
		f.change()
		f.changed, f.change = context.WithCancel(context.Background())
	}
	return true
}

// awake waits until the container is not frozen. The context that it returns ends before
// the container is frozen, which waits for done. It is nil if ctx ended.
func (f *frost) awake(ctx context.Context) (awake context.Context, done func()) {
	for {
		f.mu.Lock()
		changed := f.changed
		if !f.frozen {
			f.checks.Add(1)
			f.mu.Unlock()
			return f.until(ctx, changed)
		}
		f.mu.Unlock()
		select {
		case <-changed.Done():
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// until is a context that ends with ctx, and with changed.
func (f *frost) until(ctx, changed context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(changed, fault.Func("cell", cancel))
	return ctx, func() {
		stop()
		cancel()
		f.checks.Done()
	}
}

// freeze freezes the container, and returns what is closed when it is thawed; nil if it did
// not freeze it.
func (i *instance) freeze(ctx context.Context) (thawed <-chan struct{}, err error) {
	i.frost.turn.Lock()
	defer i.frost.turn.Unlock()
	switch {
	case i.frost.isFrozen():
		return nil, nil
	case i.record().Phase != lrp.PhaseRunning || i.halt.Err() != nil || !i.frost.set(true):
		return nil, ErrBusy
	}
	i.frost.checks.Wait()
	ctx, cancel := context.WithTimeout(ctx, freezeTime)
	defer cancel()
	if err := i.cell.cfg.Containers.Freeze(ctx, i.guid()); err != nil {
		i.frost.set(false)
		return nil, err
	}
	return i.frost.next(), nil
}

func (i *instance) thaw() error {
	i.frost.turn.Lock()
	defer i.frost.turn.Unlock()
	if !i.frost.isFrozen() {
		return nil
	}
	if err := i.cell.cfg.Containers.Thaw(i.guid()); err != nil {
		return fmt.Errorf("wake instance %s: %w", i.guid(), err)
	}
	i.frost.set(false)
	return nil
}

// thawToEnd thaws a container that is stopped: frozen, it would not end.
func (i *instance) thawToEnd() {
	if err := i.thaw(); err != nil { // it is thawed again when it is taken down
		i.cell.cfg.Log.Error("container was not thawed", "instance_guid", i.guid(), "err", err)
	}
}

// stay keeps a container thawed until release is called.
func (i *instance) stay() (release func(), err error) {
	f := i.frost
	f.mu.Lock()
	f.sessions++
	f.mu.Unlock()
	release = sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.sessions--
	})
	if err := i.thaw(); err != nil {
		release()
		return nil, err
	}
	return release, nil
}
