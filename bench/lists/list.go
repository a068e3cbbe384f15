package main

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"cupola/bench/daemon"
	"cupola/bench/report"
)

// list is a list of the API.
type list struct{ name, path string }

// cost is what one call of a list took.
type cost struct {
	wall  time.Duration // the median, until the client has read all
	cpu   time.Duration // of the daemon, the mean
	bytes int
}

// measure calls a list once, and then as often as is said.
func (l list) measure(ctx context.Context, c *daemon.Client, pid, calls int) (cost, error) {
	var body json.RawMessage
	if err := c.Call(ctx, http.MethodGet, l.path, nil, &body); err != nil {
		return cost{}, err
	}
	before, err := daemon.CPUTime(pid)
	if err != nil {
		return cost{}, err
	}
	walls := make([]time.Duration, calls)
	for i := range walls {
		began := time.Now()
		if err := c.Call(ctx, http.MethodGet, l.path, nil, nil); err != nil {
			return cost{}, err
		}
		walls[i] = time.Since(began)
	}
	after, err := daemon.CPUTime(pid)
	return cost{wall: report.Median(walls), cpu: (after - before) / time.Duration(calls), bytes: len(body)}, err
}
