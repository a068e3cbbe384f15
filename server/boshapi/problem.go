package boshapi

import (
	"fmt"
	"strconv"
	"strings"

	"cupola/server/bosh/director"
)

// scan looks for problems; listProblems shows them. Nothing is kept between.
func scan(c *call) (*answer, error) {
	d, err := c.deployment()
	if err != nil {
		return nil, err
	}
	all, err := director.Problems(c.tx, d)
	if err != nil {
		return nil, err
	}
	return c.ended(director.Ended{Deployment: d.Name, Kind: director.Scan, Result: "scan complete", Events: events("Scanning instances and disks", fmt.Sprintf("%d problems found", len(all)))})
}

// The resolutions of a problem.
const (
	repair = "repair"
	ignore = "ignore"
)

func listProblems(c *call) (*answer, error) {
	d, err := c.deployment()
	if err != nil {
		return nil, err
	}
	problems, err := director.Problems(c.tx, d)
	all := []doc{}
	for n, p := range problems {
		group, _, _ := strings.Cut(p.Resource, "/")
		all = append(all, doc{"id": n + 1, "type": p.Type, "description": p.Resource + ": " + p.Description, "instance_group": group, "data": doc{},
			"resolutions": []doc{{"name": repair, "plan": title(p.Resolution)}, {"name": ignore, "plan": "Skip for now"}}})
	}
	return &answer{body: all}, err
}

func title(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// resolveProblems repairs all problems, or none: a resolution that is null is the first.
func resolveProblems(c *call) (*answer, error) {
	d, err := c.deployment()
	if err != nil {
		return nil, err
	}
	var req struct{ Resolutions map[string]*string }
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	problems, err := director.Problems(c.tx, d)
	if err != nil {
		return nil, err
	}
	repaired := 0
	for id, how := range req.Resolutions {
		n, err := strconv.Atoi(id)
		switch {
		case err != nil || n < 1 || n > len(problems):
			return nil, &refusal{400, 410002, "Problem " + id + " doesn't exist any longer: scan again"}
		case how == nil || *how == repair:
			repaired++
		case *how != ignore:
			return nil, &refusal{400, 410003, fmt.Sprintf("Unknown resolution %q: give repair or ignore", *how)}
		}
	}
	switch {
	case repaired == 0:
		return c.ended(director.Ended{Deployment: d.Name, Kind: director.Resolve, Result: "0 resolved"})
	case repaired < len(problems):
		return nil, refuse("cupola repairs all problems of a deployment at once: choose repair for all %d, or ignore", len(problems))
	}
	return c.ask(d.Name, director.Recreate, director.Order{Repair: true})
}
