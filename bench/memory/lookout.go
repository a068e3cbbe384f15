package main

import (
	"context"
	"strconv"
	"time"

	"cupola/bench/daemon"
	"cupola/bench/report"
)

// lookout watches a daemon.
type lookout struct {
	pid    int
	settle time.Duration // before it is looked at
	table  *report.Table
}

// look waits and notes what the daemon holds, and what CPU it used meanwhile.
// grown is how long the apps that were added took to run.
func (l *lookout) look(ctx context.Context, apps int, grown time.Duration) error {
	before, err := daemon.CPUTime(l.pid)
	if err != nil {
		return err
	}
	select {
	case <-time.After(l.settle):
	case <-ctx.Done():
		return ctx.Err()
	}
	after, err := daemon.CPUTime(l.pid)
	if err != nil {
		return err
	}
	held, err := daemon.Status(l.pid, "VmRSS", "RssAnon", "Threads")
	if err != nil {
		return err
	}
	l.table.Add(strconv.Itoa(apps), report.Figure(float64(held[0])/1024, 1), report.Figure(float64(held[1])/1024, 1), strconv.Itoa(held[2]),
		report.Figure(100*(after-before).Seconds()/l.settle.Seconds(), 1), report.Figure(grown.Seconds(), 1))
	return nil
}
