package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Level says how bad a finding is.
type Level int

// The levels, the worst last.
const (
	Info    Level = iota // nothing is wrong
	Warning              // something has no effect, or not the one it may look like
	Error                // it cannot be deployed
)

// String is the level's name.
func (l Level) String() string { return [...]string{"info", "warning", "error"}[l] }

// MarshalText writes the level's name.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// maxFindings bounds how many findings one manifest can have.
const maxFindings = 1000

// At is where a part of a manifest stands.
type At struct {
	Path string // as ops files write it, like /instance_groups/name=api/vm_type
	Line int    // 0 when it is not from the manifest's own text
}

// Finding is one thing to say about a manifest.
type Finding struct {
	Level Level  `json:"level"`
	Path  string `json:"path"`
	Line  int    `json:"line,omitempty"`
	What  string `json:"what"`
	Mend  string `json:"mend,omitempty"`

	// soft is an error that only cupola sees as one: BOSH deploys such a manifest.
	soft bool
	// unknown is true for unknown keys.
	unknown bool
}

// String is the finding on one line, without its level.
func (f Finding) String() string {
	s := f.Path + ": " + f.What
	if f.Mend != "" {
		s += "; " + f.Mend
	}
	return s
}

// Findings are what Parse and Lint found.
type Findings []Finding

func (all *Findings) add(f Finding) {
	switch n := len(*all); {
	case n < maxFindings:
		*all = append(*all, f)
	case n == maxFindings:
		*all = append(*all, Finding{Level: Error, Path: "/", What: fmt.Sprintf("more than %d findings; the rest is not shown", maxFindings)})
	}
}

func (all *Findings) errorf(at At, format string, args ...any) {
	all.add(Finding{Level: Error, Path: at.Path, Line: at.Line, What: fmt.Sprintf(format, args...)})
}

func (all *Findings) warnf(at At, format string, args ...any) {
	all.add(Finding{Level: Warning, Path: at.Path, Line: at.Line, What: fmt.Sprintf(format, args...)})
}

func (all *Findings) infof(at At, format string, args ...any) {
	all.add(Finding{Level: Info, Path: at.Path, Line: at.Line, What: fmt.Sprintf(format, args...)})
}

// Sort puts the worst first, and what is equally bad in the order of the
// manifest.
func (all Findings) Sort() {
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), cmp.Compare(a.Line, b.Line), strings.Compare(a.Path, b.Path))
	})
}

// Count returns how many findings have a level.
func (all Findings) Count(l Level) (n int) {
	for _, f := range all {
		if f.Level == l {
			n++
		}
	}
	return n
}

// Err is nil, or names all errors, one a line.
func (all Findings) Err() error {
	var lines []string
	for _, f := range all {
		if f.Level == Error {
			lines = append(lines, f.String())
		}
	}
	if lines == nil {
		return nil
	}
	return fmt.Errorf("the manifest cannot be deployed:\n%s", strings.Join(lines, "\n"))
}

// Graded returns the findings with their levels as the options want them: o.Lenient
// makes warnings of what only cupola refuses, o.Strict errors of unknown keys.
func (all Findings) Graded(o Options) Findings {
	graded := slices.Clone(all)
	for i, f := range graded {
		switch {
		case f.Level == Error && f.soft && o.Lenient:
			graded[i].Level = Warning
		case f.Level == Warning && f.unknown && o.Strict:
			graded[i].Level = Error
		}
	}
	return graded
}

// Options say how severe Lint is.
type Options struct {
	Lenient bool // what only cupola refuses is a warning
	Strict  bool // unknown keys are errors, and ignored keys are reported even if empty
	// Given are the names of the variables that have values though the
	// manifest does not declare them. When it is nil, that is not known, and
	// those that are missing are warnings; otherwise they are errors.
	Given []string
}

func cut(s string, n int) string { return s[:min(len(s), n)] }
