package gitpush

import (
	"context"
	"strings"
	"sync"
	"time"

	"cupola/runtime/fault"
	"cupola/server/logcache/logpage"
)

// follower reads an app's log while something else happens.
type follower struct {
	end  context.CancelFunc
	done chan struct{}
	once sync.Once
	kept []string
}

// shownLast is how many lines of an app's log follow a failed start.
const shownLast = 15

// follow reads the lines of an app's log from now on whose source begins with a prefix:
// it shows them, or keeps them for last.
func (p *push) follow(ctx context.Context, prefix string, show bool) *follower {
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{end: cancel, done: make(chan struct{})}
	next := time.Now().UnixNano()
	read := func(ctx context.Context) {
		lines, last := p.lines(ctx, prefix, next)
		next = max(next, last+1)
		for _, l := range lines {
			if show {
				p.out.line("  %s", l)
			}
		}
		if !show {
			f.kept = append(f.kept, lines...)
			f.kept = f.kept[max(0, len(f.kept)-shownLast):]
		}
	}
	fault.Go("git", func() {
		defer close(f.done)
		for pause(ctx) == nil {
			read(ctx)
		}
		read(context.WithoutCancel(ctx)) // what came last
	})
	return f
}

func (f *follower) stop() {
	f.once.Do(func() {
		f.end()
		<-f.done
	})
}

// last are the last lines. It is called after stop.
func (f *follower) last() []string { return f.kept }

// lines reads the log from a time on; last is the time of the last line. What goes
// wrong is tried again with the next read.
func (p *push) lines(ctx context.Context, prefix string, from int64) (lines []string, last int64) {
	var page logpage.Page
	if err := p.client.call(ctx, "GET", logpage.Path(p.app, from), nil, &page); err != nil {
		return nil, 0
	}
	return page.Lines(func(source string) bool {
		return strings.HasPrefix(source, prefix) && source != "RTR" && source != "API"
	})
}
