package cell

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Leaks lists what is left in the kernel or on disk without a container's
// record: one line each, sorted. It needs no Run, and works next to a running
// daemon: a container's record exists before its parts and until they are
// removed, so a container in transition is not a leak.
func (c *Cell) Leaks(context.Context) ([]string, error) {
	first, err := c.leaks()
	if err != nil || len(first) == 0 {
		return nil, err
	}
	// The lists are not of one moment: what is a leak is one twice.
	second, err := c.leaks()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(first, func(leak string) bool { return !slices.Contains(second, leak) }), nil
}

func (c *Cell) leaks() ([]string, error) {
	found, err := c.survey()
	if err != nil {
		return nil, err
	}
	var leaks []string
	for guid, places := range found.all {
		if _, ok := found.records[guid]; !ok {
			leaks = append(leaks, fmt.Sprintf("%s: %s", guid, strings.Join(places, ", ")))
		}
	}
	slices.Sort(leaks)
	return leaks, nil
}
