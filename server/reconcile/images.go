package reconcile

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store/cf"
)

// maxPulls is how many images are pulled at once for the BBS.
const maxPulls = 2

// pullAgain is how long a pull that failed is what an instance starts with,
// which then fails too. It is Diego's shortest wait for a restart.
const pullAgain = minBackoff

// askAgain is how long a tag's image is trusted, and assumed to be in the cache,
// which deletes unused images.
const askAgain = time.Hour

// images are those that LRPs and tasks of the BBS name by a tag. They are
// pulled before their LRPs and tasks are placed: cells ask no registry.
type images struct {
	pull func(context.Context, ImagePull) (Image, error)
	logs func(lrp.LogLine)
	done func() // called after each

	running sync.WaitGroup
	slots   chan struct{}

	mu    sync.Mutex
	pulls map[string]*pulled // by what wants it
}

// pulled is one image, for one that wants it.
type pulled struct {
	cancel context.CancelFunc
	seen   bool // by the look under way
	over   time.Time
	image  Image
	err    error
}

func newImages(c Config, done func()) *images {
	return &images{pull: c.Pull, logs: c.Logs, done: done, slots: make(chan struct{}, maxPulls), pulls: map[string]*pulled{}}
}

// resolve replaces the tag in run by the pulled image's digest. It reports whether
// run must wait for the pull. An image that cannot be pulled is left to the cell,
// which fails to create the container.
func (i *images) resolve(key string, run *lrp.RunInfo) (waits bool) {
	if i.pull == nil || !strings.HasPrefix(run.RootFS, desire.ImageScheme) || strings.Contains(run.RootFS, "@sha256:") {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	p := i.pulls[key]
	if p == nil || p.stale() {
		p = i.begin(key, *run, p)
	}
	p.seen = true
	switch {
	case p.over.IsZero():
		return true
	case p.err == nil:
		run.RootFS = p.image.Reference
		run.Env = append(imageEnv(p.image), run.Env...)
	}
	return false
}

// stale reports whether the registry must be asked again.
func (p *pulled) stale() bool {
	age := time.Since(p.over)
	return !p.over.IsZero() && (p.err != nil && age >= pullAgain || age >= askAgain)
}

// still keeps an image that no container is placed with now.
func (i *images) still(key string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if p := i.pulls[key]; p != nil {
		p.seen = true
	}
}

// imageEnv is the environment that an image brings along.
func imageEnv(image Image) (env []lrp.EnvVar) {
	for _, e := range image.Env {
		name, value, _ := strings.Cut(e, "=")
		env = append(env, lrp.EnvVar{Name: name, Value: value})
	}
	return env
}

// begin begins to pull; i.mu is held. Where the registry is away, what was pulled
// before will do.
func (i *images) begin(key string, run lrp.RunInfo, before *pulled) *pulled {
	ctx, cancel := context.WithTimeout(context.Background(), desire.StagingTimeout)
	p := &pulled{cancel: cancel}
	i.pulls[key] = p
	i.running.Go(fault.Func("reconcile", func() {
		defer cancel()
		select {
		case i.slots <- struct{}{}:
			defer func() { <-i.slots }()
		case <-ctx.Done():
			return
		}
		say := func(format string, args ...any) {
			i.logs(lrp.LogLine{Target: lrp.LogTarget{GUID: run.Log.GUID, Source: "CELL", Instance: "0"}, At: time.Now(), Text: fmt.Appendf(nil, format, args...)})
		}
		say("Pulling image %s ...", run.RootFS)
		var image Image
		err := fault.Guard("reconcile", func() (err error) {
			image, err = i.pull(ctx, ImagePull{Reference: run.RootFS, AppGUID: run.Log.GUID, Say: func(line string) { say("%s", line) },
				Credential: cf.Credential{Username: run.ImageUsername, Password: run.ImagePassword}})
			return err
		})
		if err != nil {
			say("The image was not pulled: %v", err)
		}
		if err != nil && before != nil && before.err == nil {
			image, err = before.image, nil
		}
		i.mu.Lock()
		p.image, p.err, p.over = image, err, time.Now()
		i.mu.Unlock()
		i.done()
	}))
	return p
}

// keep cancels and forgets pulls that were not requested since the last keep.
func (i *images) keep() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for key, p := range i.pulls {
		if !p.seen {
			p.cancel()
			delete(i.pulls, key)
		}
		p.seen = false
	}
}

// end ends all pulls and waits for them.
func (i *images) end() {
	i.keep()
	i.keep()
	i.running.Wait()
}
