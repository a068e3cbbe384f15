package command

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Table is rows of cells below their heads, the first of which is the heads'. It
// fits a terminal: the text of the last column goes on below itself, and a name in
// the first that leaves no room for the others has a separate line, so that it
// can be copied. A width of 0 is room for everything.
type Table struct {
	Width int
	rows  [][]string
}

const (
	tableGap  = "   "
	leastLast = 10 // columns of the last cell
)

// Add adds a row.
func (t *Table) Add(cells ...string) {
	for n := range cells {
		cells[n] = Printable(cells[n])
	}
	t.rows = append(t.rows, cells)
}

func (t *Table) Write(to io.Writer) error {
	widths, rest := t.columns()
	w := bufio.NewWriter(to)
	for _, row := range t.rows {
		for n, cell := range row[:len(row)-1] {
			missing := widths[n] - utf8.RuneCountInString(cell)
			if missing < 0 {
				cell, missing = cell+"\n", widths[n]
			}
			fmt.Fprint(w, cell, strings.Repeat(" ", missing), tableGap)
		}
		below := "\n" + strings.Repeat(" ", max(t.Width-rest, 0))
		fmt.Fprintln(w, strings.Join(folded(row[len(row)-1], rest), below))
	}
	return w.Flush()
}

// columns are the widths of all columns but the last, and what is left for that;
// 0 does not bound it.
func (t *Table) columns() (widths []int, rest int) {
	last := len(t.rows[0]) - 1
	if last == 0 {
		return nil, t.Width
	}
	widths = make([]int, last)
	widest := func(n, room int) {
		for _, row := range t.rows {
			if size := utf8.RuneCountInString(row[n]); size <= room {
				widths[n] = max(widths[n], size)
			}
		}
	}
	for n := 1; n < last; n++ {
		widest(n, 1<<20)
		rest -= widths[n] + len(tableGap)
	}
	if t.Width == 0 {
		widest(0, 1<<20)
		return widths, 0
	}
	rest += t.Width - len(tableGap)
	widest(0, max(rest-leastLast, utf8.RuneCountInString(t.rows[0][0])))
	return widths, max(rest-widths[0], leastLast)
}

// folded breaks text into lines between words, and words that do not fit
// anywhere. A room of 0 is room for all.
func folded(text string, room int) (lines []string) {
	if room == 0 {
		return []string{text}
	}
	var line []rune
	for word := range strings.FieldsSeq(text) {
		rest := []rune(word)
		if len(line) > 0 && len(line)+1+len(rest) <= room {
			line = append(append(line, ' '), rest...)
			continue
		}
		if len(line) > 0 {
			lines = append(lines, string(line))
		}
		for len(rest) > room {
			lines, rest = append(lines, string(rest[:room])), rest[room:]
		}
		line = rest
	}
	return append(lines, string(line))
}
