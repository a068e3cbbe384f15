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

// streams is how many requests are under way on a connection of HTTP/2.
const streams = 16

var (
	h2Pattern     = regexp.MustCompile(`requests: \d+ total, \d+ started, \d+ done, (\d+) succeeded, (\d+) failed`)
	h2RatePattern = regexp.MustCompile(`finished in \S+, ([\d.]+) req/s`)
)

// h2load asks for a path over HTTP/2.
func h2load(path string) load {
	return func(ctx context.Context, target *process, connections int, length time.Duration) (result, error) {
		before := cpuTime(target.pid)
		out, err := exec.CommandContext(ctx, "h2load", "-c", strconv.Itoa(connections), "-m", strconv.Itoa(streams), "-t", strconv.Itoa(min(connections, 2)),
			"-D", strconv.Itoa(int(length.Seconds())), target.scheme+"://"+target.addr+path).CombinedOutput()
		used := cpuTime(target.pid) - before
		counts, rate := h2Pattern.FindSubmatch(out), h2RatePattern.FindSubmatch(out)
		if err != nil || counts == nil || rate == nil || !bytes.Contains(out, []byte("Application protocol: h2")) {
			return result{}, fmt.Errorf("h2load: %w: %s", errors.Join(err, errors.New("no figures of HTTP/2")), bytes.TrimSpace(out))
		}
		done, err := strconv.Atoi(string(counts[1]))
		failed, err2 := strconv.Atoi(string(counts[2]))
		perSecond, err3 := strconv.ParseFloat(string(rate[1]), 64)
		return result{perSecond: perSecond, cpu: used / time.Duration(max(done, 1)), errors: failed}, errors.Join(err, err2, err3)
	}
}
