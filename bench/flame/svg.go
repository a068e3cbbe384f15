package main

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"
)

// The size of the graph, in pixels.
const (
	width     = 1200
	rowHeight = 16
	headRoom  = 40
	letter    = 6.6 // of the font, about
)

// least is the share of a box that is drawn, at least: no text has room in a smaller one.
const least = 0.005

// svg draws the graph: what is called stands above what calls it, side by side by their names.
func svg(root *frame, title string) []byte {
	depth := root.depth(root.samples)
	height := headRoom + depth*rowHeight + 10
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="monospace" font-size="11">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/><text x="10" y="20" font-size="14">%s</text>`+"\n", html.EscapeString(title))
	fmt.Fprintf(&b, `<text x="%d" y="20" text-anchor="end">%d samples; orange: cupola, yellow: Go and libraries, blue: kernel</text>`+"\n", width-10, root.samples)
	root.boxes(&b, root.samples, 0, height-10)
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// depth is how many rows of boxes are drawn above a frame.
func (f *frame) depth(all int) (rows int) {
	for _, c := range f.calls {
		if c.share(all) >= least {
			rows = max(rows, 1+c.depth(all))
		}
	}
	return rows
}

func (f *frame) share(all int) float64 { return float64(f.samples) / float64(all) }

// boxes draws what a frame calls, from x on, above y.
func (f *frame) boxes(b *bytes.Buffer, all int, x float64, y int) {
	calls := slices.SortedFunc(slices.Values(f.calls), func(p, q *frame) int { return cmp.Compare(p.name, q.name) })
	for _, c := range calls {
		wide := c.share(all) * width
		if c.share(all) >= least {
			c.box(b, all, x, wide, y-rowHeight)
			c.boxes(b, all, x, y-rowHeight)
		}
		x += wide
	}
}

func (f *frame) box(b *bytes.Buffer, all int, x, wide float64, y int) {
	fmt.Fprintf(b, `<g><title>%s: %.1f %%</title><rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`,
		html.EscapeString(f.name), 100*f.share(all), x, y, max(wide-0.5, 0.5), rowHeight-1, f.colour())
	if letters := int((wide - 4) / letter); letters >= 3 {
		fmt.Fprintf(b, `<text x="%.1f" y="%d">%s</text>`, x+2, y+rowHeight-5, html.EscapeString(shortened(f.name, letters)))
	}
	b.WriteString("</g>\n")
}

func (f *frame) colour() string {
	switch {
	case f.kernel:
		return "#9cc3e6"
	case strings.HasPrefix(f.name, "cupola/"):
		return "#f4a261"
	}
	return "#f2d675"
}

// shortened is a function's name without the path of its package, in so many letters.
func shortened(name string, letters int) string {
	name = name[strings.LastIndexByte(name, '/')+1:]
	if len(name) <= letters {
		return name
	}
	return name[:letters-2] + ".."
}
