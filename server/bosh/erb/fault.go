package erb

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// fault is what is wrong with one template.
type fault struct {
	Template *Template
	Line     int // 0 when it is not known
	What     string
}

// Error names the template and the line, and says what is wrong.
func (f *fault) Error() string {
	where := fmt.Sprintf("instance %s/%d, job %q, template %s", f.Template.Group, f.Template.Index, f.Template.Job, f.Template.Source)
	if f.Line > 0 {
		where += fmt.Sprintf(":%d", f.Line)
	}
	return where + ": " + f.What
}

// faults are all that is wrong with some templates.
type faults []*fault

// maxFaults bounds the faults in an error.
const maxFaults = 50

// Error returns one line per fault.
func (f faults) Error() string {
	var lines []string
	for _, each := range f[:min(len(f), maxFaults)] {
		lines = append(lines, each.Error())
	}
	if more := len(f) - maxFaults; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// missingRuby says that a job cannot be rendered without Ruby.
type missingRuby struct {
	Job       string
	Templates int  // that need it
	BPM       bool // bpm.yml is one of them
}

// Error says what to install.
func (e missingRuby) Error() string {
	bpm := "no"
	if e.BPM {
		bpm = "yes"
	}
	return fmt.Sprintf("job %q needs Ruby to render %d templates (bpm.yml: %s): install ruby (on Debian and Ubuntu: apt-get install ruby),"+
		" or make a stack that has it (cupola stack build debian12 --package ruby)", e.Job, e.Templates, bpm)
}

// missing is a MissingRuby for each job of the templates at those places.
func missing(all []Template, at []int) error {
	var jobs []missingRuby
	seen := map[[2]string]bool{}
	for _, i := range at {
		t := &all[i]
		if seen[[2]string{t.Job, t.Destination}] {
			continue
		}
		seen[[2]string{t.Job, t.Destination}] = true
		n := slices.IndexFunc(jobs, func(m missingRuby) bool { return m.Job == t.Job })
		if n < 0 {
			jobs, n = append(jobs, missingRuby{Job: t.Job}), len(jobs)
		}
		jobs[n].Templates++
		jobs[n].BPM = jobs[n].BPM || t.bpm()
	}
	var errs []error
	for _, m := range jobs {
		errs = append(errs, m)
	}
	return errors.Join(errs...)
}
