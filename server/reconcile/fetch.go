package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"cupola/runtime/fairqueue"
	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// How many downloads run at once, in all and for one organization, so that slow
// ones do not delay the staging of others. One that takes fetchTime is cancelled.
const (
	maxFetches    = 4
	maxOrgFetches = 2
	fetchTime     = 10 * time.Minute
)

// fetches pulls the images of staging builds, for each build again: a tag's image
// may change.
type fetches struct {
	pull  func(context.Context, ImagePull) (Image, error)
	store *store.Store
	logs  func(lrp.LogLine)
	log   *slog.Logger
	done  func() // called after each
	// release ends the staging of builds that are images.
	release releaser
	queue   *fairqueue.Queue

	running sync.WaitGroup

	mu     sync.Mutex
	builds map[string]*fetch
}

// fetch is what one build fetches.
type fetch struct {
	err    error
	cancel context.CancelFunc
}

// failed is why the image of a build was not pulled; nil while it is pulled.
func (f *fetches) failed(build string) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.builds[build]; b != nil {
		return b.err
	}
	return nil
}

// want begins to pull the images that a build in an organization needs. It needs
// the same as long as it is staging.
func (f *fetches) want(build *cf.Build, org string, images needed) {
	if f == nil {
		return // a read-only load pulls nothing
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.builds[build.GUID] != nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), desire.StagingTimeout, errSlow(desire.StagingTimeout))
	b := &fetch{cancel: cancel}
	f.builds[build.GUID] = b
	f.running.Go(fault.Func("reconcile", func() { f.run(ctx, b, org, func(ctx context.Context) error { return f.images(ctx, build, images) }) }))
}

// keep cancels and forgets the fetches of other builds.
func (f *fetches) keep(work []Work) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for guid, b := range f.builds {
		if !slices.ContainsFunc(work, func(w Work) bool { return w.GUID == guid }) {
			b.cancel()
			delete(f.builds, guid)
		}
	}
}

// end ends all fetches and waits for them.
func (f *fetches) end() {
	f.keep(nil)
	f.running.Wait()
}

// run does one fetch of a build when it is its organization's turn.
func (f *fetches) run(ctx context.Context, b *fetch, org string, do func(context.Context) error) {
	err := fault.Guard("reconcile", func() error { return f.inTurn(ctx, org, do) })
	if err != nil {
		f.mu.Lock()
		b.err = err
		f.mu.Unlock()
	}
	f.done()
}

// inTurn waits for a slot, no longer than a staging may take.
func (f *fetches) inTurn(ctx context.Context, org string, do func(context.Context) error) error {
	slot, err := f.queue.Acquire(ctx, org)
	if err != nil {
		return desire.StagingFailure("exceeded " + desire.StagingTimeout.String() + " timeout")
	}
	defer slot.Release()
	ctx, cancel := context.WithTimeoutCause(store.As(ctx, org), fetchTime, errSlow(fetchTime))
	defer cancel()
	return do(ctx)
}

func errSlow(limit time.Duration) error { return fmt.Errorf("it took longer than %s", limit) }

// cause is why a fetch failed: that it was ended, where it was.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (f *fetches) say(appGUID string, isErr bool, format string, args ...any) {
	f.logs(lrp.LogLine{Target: lrp.LogTarget{GUID: appGUID, Source: "STG", Instance: "0"}, At: time.Now(), Err: isErr, Text: fmt.Appendf(nil, format, args...)})
}
