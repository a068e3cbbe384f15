package command

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Report shows what a push does: a line for each step, and on a terminal a
// bar for an upload.
type Report struct {
	out      io.Writer
	terminal bool
	width    int // of the terminal; 0 does not wrap
	drawn    time.Time
}

// NewReport makes a Report.
func NewReport(e *Env) *Report {
	return &Report{out: e.Out, terminal: e.Terminal, width: Width(e)}
}

// Title writes a line above steps.
func (p *Report) Title(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

// Step writes the line of a step.
func (p *Report) Step(name, format string, args ...any) {
	fmt.Fprintf(p.out, "  %-10s "+format+"\n", append([]any{name}, args...)...)
}

// Line shows a line of the app's log. What does not fit goes on below itself.
func (p *Report) Line(text string) {
	const indent, least = "             ", 20
	rest, room := []rune(text), p.width-len(indent)
	for room >= least && len(rest) > room {
		fmt.Fprintf(p.out, "%s%s\n", indent, string(rest[:room]))
		rest = rest[room:]
	}
	fmt.Fprintf(p.out, "%s%s\n", indent, string(rest))
}

// Reader counts what is read of r, which has size bytes.
func (p *Report) Reader(name string, r io.Reader, size int64) io.Reader {
	return &counter{Report: p, name: name, r: r, size: size, started: time.Now()}
}

// End ends the line of a bar.
func (p *Report) End() {
	if p.terminal && !p.drawn.IsZero() {
		fmt.Fprintln(p.out)
	}
}

type counter struct {
	*Report
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
		c.Step(c.name, "%s in %.1f s", BytesText(c.read), time.Since(c.started).Seconds())
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
	fmt.Fprintf(c.out, "\r  %-10s [%s%s] %3.0f %%  %s/s   ", c.name, strings.Repeat("=", full), strings.Repeat(" ", width-full), 100*part, BytesText(int64(rate)))
}
