package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// progress tells what a push does: a line for each step, and on a terminal a
// bar for an upload.
type progress struct {
	out      io.Writer
	terminal bool
	width    int // of the terminal; 0 does not wrap
	drawn    time.Time
}

func newProgress(e *env) *progress {
	return &progress{out: e.out, terminal: e.terminal, width: width(e)}
}

func (p *progress) title(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

func (p *progress) step(name, format string, args ...any) {
	fmt.Fprintf(p.out, "  %-10s "+format+"\n", append([]any{name}, args...)...)
}

// line shows a line of the app's log. What does not fit goes on below itself.
func (p *progress) line(text string) {
	const indent, least = "             ", 20
	rest, room := []rune(text), p.width-len(indent)
	for room >= least && len(rest) > room {
		fmt.Fprintf(p.out, "%s%s\n", indent, string(rest[:room]))
		rest = rest[room:]
	}
	fmt.Fprintf(p.out, "%s%s\n", indent, string(rest))
}

// reader counts what is read of r, which has size bytes.
func (p *progress) reader(name string, r io.Reader, size int64) io.Reader {
	return &counter{progress: p, name: name, r: r, size: size, started: time.Now()}
}

// end ends the line of a bar.
func (p *progress) end() {
	if p.terminal && !p.drawn.IsZero() {
		fmt.Fprintln(p.out)
	}
}

type counter struct {
	*progress
	name       string
	r          io.Reader
	size, read int64
	started    time.Time
}

// Read reads on, and draws the bar at most ten times a second.
func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.read += int64(n)
	if done := err == io.EOF; c.terminal && (done || time.Since(c.drawn) > 100*time.Millisecond) {
		c.drawn = time.Now()
		c.draw()
	}
	if err == io.EOF && !c.terminal {
		c.step(c.name, "%s in %.1f s", bytesText(c.read), time.Since(c.started).Seconds())
	}
	return n, err
}

func (c *counter) draw() {
	const width = 24
	part := 1.0
	if c.size > 0 {
		part = float64(c.read) / float64(c.size)
	}
	full := int(part * width)
	rate := float64(c.read) / max(time.Since(c.started).Seconds(), 0.001)
	fmt.Fprintf(c.out, "\r  %-10s [%s%s] %3.0f %%  %s/s   ", c.name, strings.Repeat("=", full), strings.Repeat(" ", width-full), 100*part, bytesText(int64(rate)))
}

// bytesText writes a number of bytes for people: "34 kB", "1.2 MB".
func bytesText(n int64) string {
	v, unit := float64(n), "B"
	for _, u := range []string{"kB", "MB", "GB"} {
		if v < 1000 {
			break
		}
		v, unit = v/1000, u
	}
	if v >= 10 || unit == "B" {
		return fmt.Sprintf("%.0f %s", v, unit)
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}

// splitURL splits a route's URL, which has no scheme, into host and path.
func splitURL(s string) (host, path string, ok bool) {
	host, path, ok = strings.Cut(s, "/")
	if ok {
		path = "/" + path
	}
	return host, path, ok
}
