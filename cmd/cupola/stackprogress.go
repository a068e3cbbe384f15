package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"cupola/server"
)

// stackProgress tells how far a stack is: on a terminal in one line that is
// drawn anew, otherwise in a line for each step, and one every five seconds.
type stackProgress struct {
	out      io.Writer
	terminal bool
	width    int
	started  time.Time
	now      func() time.Time
	drawn    time.Time
	last     map[string]server.StackStep // by Step
	lastName string
}

func newStackProgress(e *env) *stackProgress {
	return &stackProgress{out: e.out, terminal: e.terminal, width: width(e), started: time.Now(), now: time.Now, last: map[string]server.StackStep{}}
}

const (
	redraw = 100 * time.Millisecond
	retell = 5 * time.Second
)

func (p *stackProgress) step(s server.StackStep) {
	if s.Step == "warning" {
		p.clear()
		fmt.Fprintf(p.out, "  warning    %s\n", s.Detail)
		return
	}
	p.last[s.Step] = s
	fresh := p.fresh(s.Step)
	p.lastName = s.Step
	since := p.now().Sub(p.drawn)
	switch {
	case p.terminal && (fresh || since >= redraw):
		text := []rune(p.line(s))
		if p.width > 0 && len(text) >= p.width {
			text = text[:p.width-1]
		}
		fmt.Fprintf(p.out, "\r\x1b[K%s", string(text))
	case !p.terminal && (fresh || since >= retell):
		fmt.Fprintln(p.out, p.line(s))
	default:
		return
	}
	p.drawn = p.now()
}

// fresh tells whether a step is another one than before. Downloading and
// unpacking go on at the same time.
func (p *stackProgress) fresh(step string) bool {
	both := func(s string) bool { return s == "download" || s == "unpack" }
	return step != p.lastName && !(both(step) && both(p.lastName))
}

// clear takes the drawn line away.
func (p *stackProgress) clear() {
	if p.terminal && !p.drawn.IsZero() {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

func (p *stackProgress) line(s server.StackStep) string {
	switch s.Step {
	case "index":
		return "  index      " + s.Detail
	case "resolve":
		return "  resolve    which packages belong together"
	case "download", "unpack":
		return p.packages()
	case "finish":
		return "  finish     accounts, certificates, alternatives, dpkg's database"
	case "save":
		return "  save       to the disk"
	case "import":
		return "  import     " + p.bar(share(s), s.Done)
	}
	return "  " + s.Step + "  " + s.Detail
}

// packages tells of downloading and unpacking in one line.
func (p *stackProgress) packages() string {
	got, open := p.last["download"], p.last["unpack"]
	text := p.bar((share(got)+share(open))/2, got.Done)
	if open.Total > 0 {
		text += fmt.Sprintf("  package %d of %d: %s", open.Done, open.Total, open.Detail)
	}
	return "  packages   " + text
}

func share(s server.StackStep) float64 {
	if s.Total <= 0 {
		return 0
	}
	return min(1, float64(s.Done)/float64(s.Total))
}

// bar draws what part is done, the bytes so far with their rate, and how long
// the rest will take.
func (p *stackProgress) bar(part float64, bytes int64) string {
	const cells = 20
	full := int(part * cells)
	elapsed := max(p.now().Sub(p.started).Seconds(), 0.001)
	text := fmt.Sprintf("[%s%s] %3.0f %%  %s, %s/s", strings.Repeat("=", full), strings.Repeat(" ", cells-full), 100*part, bytesText(bytes), bytesText(int64(float64(bytes)/elapsed)))
	if part > 0.02 && part < 1 {
		text += fmt.Sprintf(", %.0f s left", elapsed*(1-part)/part)
	}
	return text
}
