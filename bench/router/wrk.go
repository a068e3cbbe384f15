package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

// process is a server under test.
type process struct {
	name, scheme, addr string
	pid                int
	stop               func()
}

// result is what one run of a load says.
type result struct {
	perSecond float64
	p99       time.Duration // 0: not known
	cpu       time.Duration // for each request or message
	errors    int
}

var (
	ratePattern  = regexp.MustCompile(`Requests/sec:\s+([\d.]+)`)
	p99Pattern   = regexp.MustCompile(`(?m)^\s+99%\s+(\S+)`)
	errorPattern = regexp.MustCompile(`Non-2xx or 3xx responses: (\d+)|connect (\d+), read (\d+), write (\d+), timeout (\d+)`)
)

// wrk asks for a path over HTTP/1.1.
func wrk(path string, args ...string) load {
	return func(ctx context.Context, target *process, connections int, length time.Duration) (result, error) {
		before := cpuTime(target.pid)
		args := append([]string{"--latency", "-t", strconv.Itoa(min(connections, 2)), "-c", strconv.Itoa(connections), "-d", length.String()}, args...)
		out, err := exec.CommandContext(ctx, "wrk", append(args, target.scheme+"://"+target.addr+path)...).CombinedOutput()
		if err != nil {
			return result{}, fmt.Errorf("wrk: %w: %s", err, bytes.TrimSpace(out))
		}
		r, err := parseWrk(out)
		if err != nil {
			return r, err
		}
		r.cpu = time.Duration(float64(cpuTime(target.pid)-before) / (r.perSecond * length.Seconds()))
		return r, nil
	}
}

func parseWrk(out []byte) (result, error) {
	rate, p99 := ratePattern.FindSubmatch(out), p99Pattern.FindSubmatch(out)
	if rate == nil || p99 == nil {
		return result{}, fmt.Errorf("wrk said %q", out)
	}
	var r result
	var err, err2 error
	r.perSecond, err = strconv.ParseFloat(string(rate[1]), 64)
	r.p99, err2 = time.ParseDuration(string(p99[1]))
	for _, m := range errorPattern.FindAllSubmatch(out, -1) {
		for _, field := range m[1:] {
			n, _ := strconv.Atoi(string(field)) // an empty one is none
			r.errors += n
		}
	}
	return r, errors.Join(err, err2)
}
