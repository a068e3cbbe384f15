package api

import (
	"testing"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

func TestAnInstanceComesUntilItsRouteCanLeadThere(t *testing.T) {
	checked := cf.HealthCheck{Type: "http"}
	for _, c := range []struct {
		name   string
		actual *lrp.Actual
		check  cf.HealthCheck
		want   bool
	}{
		{name: "no row yet", want: true},
		{name: "starts", actual: &lrp.Actual{State: lrp.Claimed}, want: true},
		{name: "has found no room", actual: &lrp.Actual{State: lrp.Unclaimed, PlacementError: "insufficient resources"}},
		{name: "runs, without its route", actual: &lrp.Actual{State: lrp.Running}, want: true},
		{name: "runs, and is not ready by its own check", actual: &lrp.Actual{State: lrp.Running}, check: checked},
		{name: "runs", actual: &lrp.Actual{State: lrp.Running, Ready: true}},
		{name: "crashed", actual: &lrp.Actual{State: lrp.Crashed}},
	} {
		if got := comes(&cf.Process{ReadinessCheck: c.check}, c.actual); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}
