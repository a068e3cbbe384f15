package simulate

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Step is one thing that happens to a fleet.
type Step struct {
	Verb    string
	N       int           // how many, or percent of what there is
	Percent bool          // N is percent
	For     time.Duration // wait
}

// String is the step as ParseScript reads it.
func (s Step) String() string {
	switch {
	case s.Verb == "wait":
		return "wait " + s.For.String()
	case s.Verb == "start":
		return s.Verb
	case s.Percent:
		return fmt.Sprintf("%s %d%%", s.Verb, s.N)
	}
	return fmt.Sprintf("%s %d", s.Verb, s.N)
}

// DefaultScript is a day of a fleet in a few steps.
const DefaultScript = "start, crash 1%, lose 1%, return 1%, deploy 5%, leave 1%, tasks 1000"

// verbs are what may happen.
var verbs = map[string]string{
	"start":  "the apps are started",
	"lose":   "cells vanish with what is on them",
	"return": "cells that vanished are back, empty",
	"leave":  "cells are taken out of the configuration",
	"crash":  "instances crash",
	"deploy": "apps get a new revision",
	"tasks":  "tasks are run",
	"wait":   "time passes",
}

// ParseScript reads steps with commas between: start; lose, return and leave
// with a number or percentage of cells; crash with one of instances; deploy with
// one of apps; tasks with a number; wait with a duration.
func ParseScript(text string) ([]Step, error) {
	var steps []Step
	for part := range strings.SplitSeq(text, ",") {
		s, err := parseStep(strings.Fields(part))
		if err != nil {
			return nil, fmt.Errorf("step %q: %w", strings.TrimSpace(part), err)
		}
		steps = append(steps, s)
	}
	return steps, nil
}

func parseStep(words []string) (s Step, err error) {
	if len(words) == 0 {
		return s, fmt.Errorf("say what happens")
	}
	s.Verb = words[0]
	if verbs[s.Verb] == "" {
		return s, fmt.Errorf("write start, lose N, return N, leave N, crash N, deploy N, tasks N or wait DURATION; N may be a percentage")
	}
	if want := 2; s.Verb != "start" && len(words) != want || s.Verb == "start" && len(words) != 1 {
		return s, fmt.Errorf("start takes nothing, everything else one number or duration")
	}
	switch s.Verb {
	case "start":
		return s, nil
	case "wait":
		if s.For, err = time.ParseDuration(words[1]); err != nil || s.For < 0 || s.For > 24*time.Hour {
			return s, fmt.Errorf("%q is not a duration of up to 24h", words[1])
		}
		return s, nil
	}
	number, percent := strings.CutSuffix(words[1], "%")
	s.N, err = strconv.Atoi(number)
	if s.Percent = percent; err != nil || s.N < 0 || s.Percent && s.N > 100 || s.Verb == "tasks" && s.Percent {
		return s, fmt.Errorf("%q is not a number that it accepts", words[1])
	}
	return s, nil
}

// of is how many of n the step is about.
func (s Step) of(n int) int {
	if s.Percent {
		return n * s.N / 100
	}
	return min(s.N, n)
}
