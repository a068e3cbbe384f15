package apps

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/server/logcache/logpage"
)

// LogsCmd is cupola logs.
type LogsCmd struct {
	Search searchLogsCmd `cmd:"" help:"Search the log of an app, as far as it is kept ('serve --log-archive')."`
}

type searchLogsCmd struct {
	capi.Flags
	capi.Place
	App        string `arg:"" help:"The app's name."`
	Text       string `arg:"" optional:"" help:"What a line must have; without it, lines are chosen by the flags."`
	IgnoreCase bool   `help:"Ignore the case of the text." short:"i"`
	Pattern    string `help:"A regular expression that a line must match." short:"e" placeholder:"REGEXP"`
	Level      string `help:"The minimum level that a line names: debug, info, warn or error." placeholder:"LEVEL"`
	Source     string `help:"Where a line must come from: APP, APP/PROC/WEB, RTR, STG, API, CELL …" placeholder:"TYPE"`
	Instance   string `help:"The index of the instance." placeholder:"INDEX"`
	Stderr     bool   `help:"Only lines of the standard error."`
	Since      string `help:"How far to look back, like 90m, 48h or 7d, or from when, like 2026-11-28T10:00:00Z; by default as far as lines are kept." placeholder:"TIME"`
	Until      string `help:"Until when to look, likewise." placeholder:"TIME"`
	Limit      int    `help:"The most lines to print, the newest; 0 is all." short:"n" default:"100"`
}

// Run prints the lines, the oldest first.
func (s *searchLogsCmd) Run(e *command.Env) error {
	query, err := s.query(time.Now())
	if err != nil {
		return err
	}
	c, err := s.Login(e.Ctx)
	if err != nil {
		return err
	}
	guid, err := s.Find(e.Ctx, c, "app", "apps", s.App)
	if err != nil {
		return err
	}
	lines, more, err := s.search(e.Ctx, c, guid, query)
	if err != nil {
		return err
	}
	for _, l := range slices.Backward(lines) {
		fmt.Fprintf(e.Out, "%s [%s/%s] %s\n", command.When(time.Unix(0, l.Nanoseconds)), command.Printable(l.Source), command.Printable(l.Instance), command.Printable(strings.TrimRight(l.Text, "\r")))
	}
	if more {
		fmt.Fprintf(e.Err, "These are the newest %d lines: give --limit for more.\n", len(lines))
	}
	if len(lines) == 0 {
		return errors.New("no line was found")
	}
	return nil
}

// query is what the API is asked for.
func (s *searchLogsCmd) query(now time.Time) (url.Values, error) {
	query := url.Values{}
	for name, value := range map[string]string{"text": s.Text, "pattern": s.Pattern, "level": s.Level, "source_type": s.Source, "instance_id": s.Instance} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for name, on := range map[string]bool{"ignore_case": s.IgnoreCase, "stderr": s.Stderr} {
		if on {
			query.Set(name, "true")
		}
	}
	for _, t := range []struct{ flag, name, text string }{{"since", "start_time", s.Since}, {"until", "end_time", s.Until}} {
		if t.text == "" {
			continue
		}
		at, err := moment(t.text, now)
		if err != nil {
			return nil, fmt.Errorf("--%s must be like 90m, 48h, 7d or 2026-11-28T10:00:00Z, not %q", t.flag, t.text)
		}
		query.Set(t.name, strconv.FormatInt(at.UnixNano(), 10))
	}
	return query, nil
}

// moment is a time, or a duration ago.
func moment(text string, now time.Time) (time.Time, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return now.Add(-time.Duration(n) * 24 * time.Hour), err
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	return time.Parse(time.RFC3339, text)
}

// search asks until there are enough lines, or no more. more reports that there may be.
func (s *searchLogsCmd) search(ctx context.Context, c *capi.Client, guid string, query url.Values) (lines []logpage.Line, more bool, err error) {
	const most = 1000 // of an answer
	for {
		limit := most
		if s.Limit > 0 {
			limit = min(most, s.Limit-len(lines))
		}
		query.Set("limit", strconv.Itoa(limit))
		var page struct {
			logpage.Page
			Next string `json:"next_end_time"`
		}
		if err := c.Call(ctx, http.MethodGet, "/api/v1/search/"+guid+"?"+query.Encode(), nil, &page); err != nil {
			return nil, false, err
		}
		lines = append(lines, page.All()...)
		if page.Next == "" || s.Limit > 0 && len(lines) >= s.Limit {
			return lines, page.Next != "", nil
		}
		query.Set("end_time", page.Next)
	}
}
