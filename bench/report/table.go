// Package report prints what the benchmarks find: tables that read as well on
// a terminal as in a Markdown page.
package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Table is a Markdown table with aligned columns: the first to the left, the
// others to the right.
type Table struct {
	rows [][]string
}

// NewTable gives a table with that head.
func NewTable(head ...string) *Table { return &Table{rows: [][]string{head}} }

// Add adds a row.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// Print writes the table and an empty line after it.
func (t *Table) Print(w io.Writer) {
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell), 3)
		}
	}
	for n, row := range t.rows {
		fmt.Fprintf(w, "| %-*s |", widths[0], row[0])
		for i, cell := range row[1:] {
			fmt.Fprintf(w, " %*s |", widths[i+1], cell)
		}
		fmt.Fprintln(w)
		if n == 0 {
			rule(w, widths)
		}
	}
	fmt.Fprintln(w)
}

func rule(w io.Writer, widths []int) {
	fmt.Fprintf(w, "|%s|", strings.Repeat("-", widths[0]+2))
	for _, width := range widths[1:] {
		fmt.Fprintf(w, "%s:|", strings.Repeat("-", width+1))
	}
	fmt.Fprintln(w)
}

// Quantile is the value below which that share of all lies: 0.5 is the median.
// There must be at least one.
func Quantile[T cmp.Ordered](all []T, share float64) T {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

// Median is the value in the middle.
func Median[T cmp.Ordered](all []T) T { return Quantile(all, 0.5) }

// MS is a duration in milliseconds.
func MS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Figure formats a number with so many decimals.
func Figure(value float64, decimals int) string { return fmt.Sprintf("%.*f", decimals, value) }
