package command

import (
	"fmt"
	"io"
	"strings"
	"time"

	"cupola/server/admin/steps"
)

// Progress shows the progress of a stack: on a terminal in one line that it redraws,
// otherwise in a line for each step, and one every five seconds.
type Progress struct {
	Out      io.Writer
	terminal bool
	width    int
	Started  time.Time
	now      func() time.Time
	drawn    time.Time
	last     map[string]steps.Step // by Step
	began    map[string]time.Time
	lastName string
}

// NewProgress makes a Progress that begins now.
func NewProgress(e *Env) *Progress {
	return &Progress{Out: e.Out, terminal: e.Terminal, width: Width(e), Started: time.Now(), now: time.Now,
		last: map[string]steps.Step{}, began: map[string]time.Time{}}
}

const (
	redraw = 100 * time.Millisecond
	retell = 5 * time.Second
)

// Step shows a step.
func (p *Progress) Step(s steps.Step) {
	if s.Step == "warning" {
		p.Clear()
		fmt.Fprintf(p.Out, "  warning    %s\n", s.Detail)
		return
	}
	p.last[s.Step] = s
	if s.Step == "layer" {
		p.layer(s)
		return
	}
	if _, ok := p.began[s.Step]; !ok {
		p.began[s.Step] = p.now()
	}
	fresh := p.fresh(s.Step)
	p.lastName = s.Step
	p.draw(p.line(s), fresh)
}

// draw shows a line: at once, or when the last one has stood for long enough.
func (p *Progress) draw(line string, now bool) {
	since := p.now().Sub(p.drawn)
	switch {
	case p.terminal && (now || since >= redraw):
		text := []rune(line)
		if p.width > 0 && len(text) >= p.width {
			text = text[:p.width-1]
		}
		fmt.Fprintf(p.Out, "\r\x1b[K%s", string(text))
	case !p.terminal && (now || since >= retell):
		fmt.Fprintln(p.Out, line)
	default:
		return
	}
	p.drawn = p.now()
}

// layer reports one of an image's layers, which come side by side: one that
// is done keeps its line.
func (p *Progress) layer(s steps.Step) {
	key := s.Step + s.Detail
	if _, ok := p.began[key]; !ok {
		p.began[key] = p.now()
	}
	if strings.HasSuffix(s.Detail, " here") {
		p.Clear()
		fmt.Fprintf(p.Out, "  layer      %s  %s\n", strings.TrimSuffix(s.Detail, " here"), BytesText(s.Total))
		return
	}
	p.draw(fmt.Sprintf("  layer      %-15s %s", s.Detail, p.barOf(key, s, share(s))), false)
}

// fresh reports whether a step is another one than before. Downloading and
// unpacking go on at the same time.
func (p *Progress) fresh(step string) bool {
	both := func(s string) bool { return s == "download" || s == "unpack" }
	return step != p.lastName && !(both(step) && both(p.lastName))
}

// Clear takes the drawn line away.
func (p *Progress) Clear() {
	if p.terminal && !p.drawn.IsZero() {
		fmt.Fprint(p.Out, "\r\x1b[K")
	}
}

func (p *Progress) line(s steps.Step) string {
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
	case "images", "stacks":
		return fmt.Sprintf("  %-10s %d of %d", s.Step, s.Done+1, s.Total)
	case "pack":
		return fmt.Sprintf("  %-10s %s  %s", s.Step, s.Detail, p.bar(s, share(s)))
	case "import", "export", "push", "backup", "verify", "restore":
		return fmt.Sprintf("  %-10s %s", s.Step, p.bar(s, share(s)))
	}
	return "  " + s.Step + "  " + s.Detail
}

// packages reports downloading and unpacking in one line.
func (p *Progress) packages() string {
	got, open := p.last["download"], p.last["unpack"]
	text := p.bar(got, (share(got)+share(open))/2)
	if open.Total > 0 {
		text += fmt.Sprintf("  package %d of %d: %s", open.Done, open.Total, open.Detail)
	}
	return "  packages   " + text
}

func share(s steps.Step) float64 {
	if s.Total <= 0 {
		return 0
	}
	return min(1, float64(s.Done)/float64(s.Total))
}

// bar draws what part of all is done, the bytes of s so far, their rate while
// there are more to come, and how long the rest of all will take.
func (p *Progress) bar(s steps.Step, part float64) string { return p.barOf(s.Step, s, part) }

func (p *Progress) barOf(key string, s steps.Step, part float64) string {
	const cells = 20
	full := int(part * cells)
	elapsed := p.now().Sub(p.began[key]).Seconds()
	text := fmt.Sprintf("[%s%s] %3.0f %%  %s", strings.Repeat("=", full), strings.Repeat(" ", cells-full), 100*part, BytesText(s.Done))
	if s.Done < s.Total && elapsed > 0.2 {
		text += fmt.Sprintf(", %s/s", BytesText(int64(float64(s.Done)/elapsed)))
	}
	if part > 0.02 && part < 1 && elapsed > 0.2 {
		text += fmt.Sprintf(", %.0f s left", elapsed*(1-part)/part)
	}
	return text
}
