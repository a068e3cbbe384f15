package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
)

// process is a server under test.
type process struct {
	name, addr string
	pid        int
	stop       func()
}

// result is what one run of wrk says.
type result struct {
	perSecond float64
	p99       string
	cpuMicros float64 // for each request
	errors    int
}

var (
	ratePattern  = regexp.MustCompile(`Requests/sec:\s+([\d.]+)`)
	p99Pattern   = regexp.MustCompile(`99%\s+(\S+)`)
	errorPattern = regexp.MustCompile(`Non-2xx or 3xx responses: (\d+)|connect (\d+), read (\d+), write (\d+), timeout (\d+)`)
)

func runWrk(ctx context.Context, target *process, connections, seconds int) (result, error) {
	before := cpuTime(target.pid)
	out, err := exec.CommandContext(ctx, "wrk", "--latency", "-t", strconv.Itoa(min(connections, 2)),
		"-c", strconv.Itoa(connections), "-d", strconv.Itoa(seconds), "http://"+target.addr+"/").CombinedOutput()
	if err != nil {
		return result{}, fmt.Errorf("wrk: %w: %s", err, bytes.TrimSpace(out))
	}
	rate, p99 := ratePattern.FindSubmatch(out), p99Pattern.FindSubmatch(out)
	if rate == nil || p99 == nil {
		return result{}, fmt.Errorf("wrk said %q", out)
	}
	r := result{p99: string(p99[1])}
	if r.perSecond, err = strconv.ParseFloat(string(rate[1]), 64); err != nil {
		return result{}, err
	}
	r.cpuMicros = float64((cpuTime(target.pid) - before).Microseconds()) / (r.perSecond * float64(seconds))
	for _, m := range errorPattern.FindAllSubmatch(out, -1) {
		for _, field := range m[1:] {
			n, _ := strconv.Atoi(string(field)) // an empty one is none
			r.errors += n
		}
	}
	return r, nil
}

// median is the run in the middle by requests a second.
func median(rs []result) result {
	sorted := slices.SortedFunc(slices.Values(rs), func(a, b result) int { return cmp.Compare(a.perSecond, b.perSecond) })
	return sorted[len(sorted)/2]
}

func errorsOf(rs []result) (sum int) {
	for _, r := range rs {
		sum += r.errors
	}
	return sum
}
