package push

import (
	"context"
	"strings"
	"sync"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/server/logcache/logpage"
)

// follower reads an app's log while something else happens.
type follower struct {
	quiet bool // keep the lines for tell
	lines []string
	end   func()
	done  chan struct{}
	once  sync.Once
}

// follow shows the lines of an app's log from a time on, until it is stopped.
func (p *Pusher) follow(ctx context.Context, app string, from time.Time) *follower {
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{end: cancel, done: make(chan struct{})}
	next := from.UnixNano()
	read := func(ctx context.Context) {
		lines, last := p.lines(ctx, app, next)
		for _, l := range lines {
			if f.quiet {
				f.lines = append(f.lines, l)
			} else {
				p.Show.Line(l)
			}
		}
		next = max(next, last+1)
	}
	go func() {
		defer close(f.done)
		for capi.Pause(ctx, 100*time.Millisecond) == nil {
			read(ctx)
		}
		read(context.WithoutCancel(ctx)) // what came last
	}()
	return f
}

func (f *follower) stop() {
	f.once.Do(func() {
		f.end()
		<-f.done
	})
}

// tell shows the lines that were kept.
func (f *follower) tell(show *command.Report) {
	f.stop()
	for _, l := range f.lines {
		show.Line(l)
	}
}

// lines reads the log from a time on; last is the time of the last line. What
// goes wrong is tried again with the next read.
func (p *Pusher) lines(ctx context.Context, app string, from int64) (lines []string, last int64) {
	var page logpage.Page
	if err := p.Client.Call(ctx, "GET", logpage.Path(app, from), nil, &page); err != nil {
		return nil, 0
	}
	return page.Lines(func(source string) bool {
		return strings.HasPrefix(source, "STG") || strings.HasPrefix(source, "APP") || source == "HEALTH"
	})
}
