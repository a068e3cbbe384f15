package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

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
	before, err := cpuTime(l.pid)
	if err != nil {
		return err
	}
	select {
	case <-time.After(l.settle):
	case <-ctx.Done():
		return ctx.Err()
	}
	after, err := cpuTime(l.pid)
	if err != nil {
		return err
	}
	held, err := status(l.pid, "VmRSS", "RssAnon", "Threads")
	if err != nil {
		return err
	}
	l.table.Add(strconv.Itoa(apps), report.Figure(float64(held[0])/1024, 1), report.Figure(float64(held[1])/1024, 1), strconv.Itoa(held[2]),
		report.Figure(100*(after-before).Seconds()/l.settle.Seconds(), 1), report.Figure(grown.Seconds(), 1))
	return nil
}

// status reads fields of /proc/PID/status; those of memory are in KiB.
func status(pid int, fields ...string) ([]int, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	values := make([]int, len(fields))
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		for i, want := range fields {
			if name == want {
				values[i], err = strconv.Atoi(strings.Fields(value)[0])
			}
		}
	}
	return values, err
}

// cpuTime is what the process has used.
func cpuTime(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(after)
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond, err // USER_HZ is 100
}
