package reconcile

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cupola/runtime/lrp"
)

// stoppable is a cell that notes whom it was told to stop.
type stoppable struct {
	Cell
	there []string

	mu      sync.Mutex
	stopped []string
}

func (c *stoppable) Stop(guid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = append(c.stopped, guid)
}

func (c *stoppable) told() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.stopped)
}

func (c *stoppable) Containers() (list []lrp.ContainerStatus) {
	for _, guid := range c.there {
		list = append(list, lrp.ContainerStatus{GUID: guid, Phase: lrp.PhaseRunning, Ready: true})
	}
	return list
}

// TestDraining: a container is stopped once, when its requests are answered or
// have had their time, and leaves from the start.
func TestDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		answered := make(chan struct{})
		cell := &stoppable{there: []string{"slow", "endless", "other"}}
		d := &draining{Cell: cell, ctx: ctx, waits: map[string]bool{}, awaitIdle: func(ctx context.Context, guid string) error {
			select {
			case <-answered:
				if guid == "slow" {
					return nil
				}
				<-ctx.Done()
			case <-ctx.Done():
			}
			return ctx.Err()
		}}
		d.Stop("slow")
		d.Stop("slow")
		d.Stop("endless")
		synctest.Wait()
		for _, c := range d.Containers() {
			if stopping := c.Phase == lrp.PhaseStopping && !c.Ready; stopping != (c.GUID != "other") {
				t.Errorf("got %+v", c)
			}
		}
		for _, step := range []struct {
			do   func()
			want []string
		}{
			{func() {}, nil},
			{func() { close(answered) }, []string{"slow"}},
			{func() { <-time.After(DrainTime) }, []string{"slow", "endless"}},
			{func() { cell.there = nil; d.Containers(); d.Stop("slow"); end() }, []string{"slow", "endless"}},
		} {
			step.do()
			synctest.Wait()
			if got := cell.told(); !slices.Equal(got, step.want) {
				t.Fatalf("got %v stopped; want %v", got, step.want)
			}
		}
	})
}
