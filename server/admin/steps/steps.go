// Package steps reports how far a long operation is.
package steps

import (
	"io"
	"time"
)

// Step is how far a step of an operation is. Total is 0 where it is not known.
type Step struct {
	Step        string // of debian.Step; "import", "layer", "export", "save", "backup", "verify", "restore"; "warning" for what the operator should know
	Detail      string
	Done, Total int64
}

// Func is called with each step.
type Func func(Step)

// Interval is the least time between two reports of one step.
const Interval = 50 * time.Millisecond

// Writer reports how many bytes went through it, not more often than each
// Interval.
type Writer struct {
	To     io.Writer
	Total  int64
	Report func(done, total int64)

	done int64
	last time.Time
}

// Write writes to To.
func (w *Writer) Write(p []byte) (int, error) {
	if w.last.IsZero() {
		w.last = time.Now()
	}
	n, err := w.To.Write(p)
	w.done += int64(n)
	if now := time.Now(); now.Sub(w.last) > Interval {
		w.last = now
		w.Report(w.done, w.Total)
	}
	return n, err
}
