package cnb

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// statusNotDetected is the exit status of bin/detect that means "not for me"
// (buildpack.md: Detection).
const statusNotDetected = 100

// detection tries an order until a group fits.
type detection struct {
	*staging
	ran  map[string]*outcome // by ID@VERSION: each buildpack is asked once
	said []string            // why groups do not fit
}

// outcome is what became of a buildpack's detection.
type outcome struct {
	status int
	err    error // why it could not be asked, or what is wrong with its plan
	output string
	plan   plan
}

// maxOrder bounds the nesting of composite buildpacks, which may name each other.
const maxOrder = 32

// detect finds the buildpacks for the app.
func (s *staging) detect() (resolved, error) {
	d := &detection{staging: s, ran: map[string]*outcome{}}
	found, err := d.order(s.order(s.autoDetect), nil, nil, false, 0)
	if errors.Is(err, errNoGroup) {
		return found, d.explain()
	}
	return found, err
}

// errNoGroup says that no group of an order fits.
var errNoGroup = errors.New("no group of buildpacks detected the app")

// order tries the groups of an order, each with what follows the composite buildpack
// that has it. done are the buildpacks before it.
func (d *detection) order(order []group, done, next []element, optional bool, depth int) (resolved, error) {
	if depth > maxOrder {
		return resolved{}, fmt.Errorf("composite buildpacks are nested more than %d times", maxOrder)
	}
	for _, g := range order {
		found, err := d.group(append(append([]element{}, g.Group...), next...), done, depth)
		if !errors.Is(err, errNoGroup) {
			return found, err
		}
	}
	if optional {
		return d.group(next, done, depth)
	}
	return resolved{}, errNoGroup
}

// group tries a group. A composite buildpack in it is replaced by each of its groups.
func (d *detection) group(elements, done []element, depth int) (resolved, error) {
	done = append([]element{}, done...)
	for i, e := range elements {
		if containsID(done, e.ID) {
			continue
		}
		bp, err := d.find(e)
		if err != nil {
			return resolved{}, err
		}
		if len(bp.Order) > 0 {
			return d.order(bp.Order, done, elements[i+1:], e.Optional, depth+1)
		}
		if e.Optional && !bp.runsOn(d.target) {
			continue
		}
		e.Version = bp.Buildpack.Version
		done = append(done, e)
	}
	return d.resolve(done)
}

func containsID(all []element, id string) bool {
	for _, e := range all {
		if e.ID == id {
			return true
		}
	}
	return false
}

// resolve asks the buildpacks of a group, and joins their plans.
func (d *detection) resolve(group []element) (resolved, error) {
	var all []passed
	var why []string
	for _, e := range group {
		bp, err := d.find(e)
		if err != nil {
			return resolved{}, err
		}
		o := d.ask(bp)
		switch reason := o.reason(e); {
		case reason == "":
			all = append(all, passed{element: e, buildpack: bp, plan: o.plan})
		case !e.Optional:
			why = append(why, reason)
		}
	}
	switch {
	case len(why) > 0:
		return d.unfit(strings.Join(why, "; "))
	case len(all) == 0:
		return d.unfit("none of its optional buildpacks detected the app")
	}
	found, err := resolve(all)
	if err != nil {
		return d.unfit(err.Error())
	}
	d.participants(found, len(group))
	return found, nil
}

func (d *detection) unfit(why string) (resolved, error) {
	d.said = append(d.said, why)
	return resolved{}, errNoGroup
}

// participants says which buildpacks build the app, as lifecycle does.
func (d *detection) participants(r resolved, of int) {
	if len(r.buildpacks) != of {
		d.say("%d of %d buildpacks participating", len(r.buildpacks), of)
	}
	width := 0
	for _, bp := range r.buildpacks {
		width = max(width, len(bp.Buildpack.ID))
	}
	for _, bp := range r.buildpacks {
		d.say("%-*s %s", width, bp.Buildpack.ID, bp.Buildpack.Version)
	}
}

// ask runs a buildpack's detection, once.
func (d *detection) ask(bp *descriptor) *outcome {
	if o := d.ran[bp.String()]; o != nil {
		return o
	}
	o := &outcome{}
	d.ran[bp.String()] = o
	if !bp.runsOn(d.target) {
		var targets []string
		for _, t := range bp.Targets {
			targets = append(targets, t.String())
		}
		o.status, o.err = -1, fmt.Errorf("it runs on %s; the stack is %s", strings.Join(targets, ", "), d.target)
		return o
	}
	dir, err := os.MkdirTemp("", "plan.")
	if err != nil {
		o.status, o.err = -1, err
		return o
	}
	defer os.RemoveAll(dir)
	d.askIn(bp, o, filepath.Join(dir, "plan.toml"))
	return o
}

func (d *detection) askIn(bp *descriptor, o *outcome, file string) {
	if o.err = os.WriteFile(file, nil, 0o600); o.err != nil {
		o.status = -1
		return
	}
	var output bytes.Buffer
	err := d.run(script{bp, "detect", []string{d.platform, file}, []string{"CNB_BUILD_PLAN_PATH=" + file}}, &output)
	o.status, o.output = exitStatus(err), output.String()
	if o.status != 0 {
		if o.status < 0 {
			o.err = err
		}
		return
	}
	if o.plan, o.err = readPlan(file); o.err != nil {
		o.status = -1
	}
}

// reason is why a buildpack does not take part; "" if it does.
func (o *outcome) reason(e element) string {
	switch {
	case o.err != nil:
		return fmt.Sprintf("%s failed to detect: %v", e, o.err)
	case o.status == 0:
		return ""
	case o.status == statusNotDetected:
		return fmt.Sprintf("%s did not detect the app", e)
	}
	return fmt.Sprintf("%s failed to detect: exit status %d", e, o.status)
}

// explain prints what the buildpacks said, and returns why no group fits.
func (d *detection) explain() error {
	for name, o := range sorted(d.ran) {
		if text := strings.TrimRight(o.output, "\n"); text != "" {
			d.say("======== Output: %s ========\n%s", name, text)
		}
	}
	text := errNoGroup.Error()
	for i, why := range d.said {
		if len(d.said) == 1 {
			text += ": " + why
			continue
		}
		text += fmt.Sprintf("\n  group %d: %s", i+1, why)
	}
	return errors.New(text)
}
