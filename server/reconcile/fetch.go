package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"cupola/runtime/fairqueue"
	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// What is fetched at once, in all and for one organization: slow downloads of
// one hold nobody else's staging back. One that takes fetchTime is given up.
const (
	maxFetches    = 4
	maxOrgFetches = 2
	fetchTime     = 10 * time.Minute
)

// fetches are the buildpacks given by URL, and the images, of the builds that
// are staging. Each build fetches its own: what a URL or a tag leads to may
// change.
type fetches struct {
	fetch func(ctx context.Context, url string) (digest string, err error)
	pull  func(context.Context, ImagePull) (Image, error)
	store *store.Store
	logs  func(lrp.LogLine)
	log   *slog.Logger
	done  func() // called after each
	queue *fairqueue.Queue

	running sync.WaitGroup

	mu     sync.Mutex
	builds map[string]*fetch
}

// fetch is what one build fetches.
type fetch struct {
	digests map[string]string // by URL, once fetched
	err     error
	cancel  context.CancelFunc
}

// of gives what a build has fetched so far, and what went wrong.
func (f *fetches) of(build string) (digests map[string]string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.builds[build]
	if b == nil {
		return nil, nil
	}
	digests = map[string]string{}
	for url, d := range b.digests {
		digests[url] = d
	}
	return digests, b.err
}

// want begins to fetch what a build in an organization needs. It needs the same
// as long as it is staging.
func (f *fetches) want(build *cf.Build, org string, urls []string, image string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.builds[build.GUID] != nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), desire.StagingTimeout, errSlow(desire.StagingTimeout))
	b := &fetch{digests: map[string]string{}, cancel: cancel}
	f.builds[build.GUID] = b
	for _, url := range urls {
		f.running.Go(func() {
			f.run(ctx, b, org, func(ctx context.Context) error { return f.buildpack(ctx, b, build.AppGUID, url) })
		})
	}
	if image != "" {
		f.running.Go(func() { f.run(ctx, b, org, func(ctx context.Context) error { return f.image(ctx, build, image) }) })
	}
}

// keep forgets, and ends, what other builds than these fetch.
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
	err := f.inTurn(ctx, org, do)
	if err != nil {
		f.mu.Lock()
		b.err = err
		f.mu.Unlock()
	}
	f.done()
}

// inTurn waits for the turn no longer than a staging may take.
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

func (f *fetches) buildpack(ctx context.Context, b *fetch, appGUID, url string) error {
	f.say(appGUID, false, "Downloading buildpack %s ...", desire.Redact(url))
	digest, err := f.fetch(ctx, url)
	if err = cause(ctx, err); err != nil {
		f.say(appGUID, true, "Buildpack %s was not downloaded: %v", desire.Redact(url), err)
		f.log.InfoContext(ctx, "buildpack was not downloaded", "app_guid", appGUID, "err", err)
		return desire.BuildError{ID: "BuildpackCompileFailed", Detail: fmt.Sprintf("App staging failed in the buildpack compile phase: buildpack %s was not downloaded: %v", desire.Redact(url), err)}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	b.digests[url] = digest
	return nil
}

func (f *fetches) say(appGUID string, isErr bool, format string, args ...any) {
	f.logs(lrp.LogLine{Target: lrp.LogTarget{GUID: appGUID, Source: "STG", Instance: "0"}, At: time.Now(), Err: isErr, Text: fmt.Appendf(nil, format, args...)})
}
