package lrp

import "time"

// Trace is what a container went through until it ran or, if it is a task or did not come to run, until its end.
type Trace struct {
	Began, Ended time.Time
	Steps        []Step
	Failure      string // why it did not run, or the task failed; "": it did well
	Result       []byte // of a task
}

// Step is a part of a Trace. Steps may overlap.
type Step struct {
	Name         string // "root filesystem", "download", "run", …
	Detail       string // what was downloaded, uploaded or run; "" for none
	Began, Ended time.Time
	Failed       bool
}
