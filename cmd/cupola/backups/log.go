package backups

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/server/logcache/logpage"
)

type logsCmd struct {
	instanceFlags
	Follow bool `help:"Print new lines until interrupted." short:"f"`
}

// followInterval is how often a log is read that is followed, as by 'cf logs'.
const followInterval = 250 * time.Millisecond

// Run prints the newest lines, and those that come then.
func (l *logsCmd) Run(e *command.Env) error {
	c, guid, err := l.find(e.Ctx)
	if err != nil {
		return err
	}
	return l.print(e, c, guid)
}

func (l *logsCmd) print(e *command.Env, c *capi.Client, guid string) error {
	began := time.Now()
	lines, err := readLog(e.Ctx, c, logpage.PathOfNewest(guid))
	if err != nil {
		return err
	}
	slices.Reverse(lines)
	from := printLines(e, lines, began.UnixNano())
	if len(lines) == 0 && !l.Follow {
		fmt.Fprintf(e.Out, "%s has no log yet.\n", l.Instance)
	}
	for l.Follow {
		select {
		case <-time.After(followInterval):
		case <-e.Ctx.Done():
			return nil
		}
		lines, err := readLog(e.Ctx, c, logpage.Path(guid, from))
		if e.Ctx.Err() != nil {
			return nil // it was interrupted
		}
		if err != nil {
			return err
		}
		from = printLines(e, lines, from)
	}
	return nil
}

func readLog(ctx context.Context, c *capi.Client, path string) ([]logpage.Line, error) {
	var page logpage.Page
	err := c.Call(ctx, http.MethodGet, path, nil, &page)
	return page.All(), err
}

// printLines prints lines, and returns where to read on: from, if there are none.
func printLines(e *command.Env, lines []logpage.Line, from int64) int64 {
	for _, l := range lines {
		from = l.Nanoseconds + 1
		fmt.Fprintf(e.Out, "%s [%s] %s\n", command.When(time.Unix(0, l.Nanoseconds)), command.Printable(l.Source), command.Printable(strings.TrimRight(l.Text, "\r")))
	}
	return from
}
