package cell

import (
	"context"
	"net/netip"
	"time"

	"cupola/runtime/health"
	"cupola/runtime/lrp"
)

// checkFunc watches a container's health until ctx ends: health.Run.
type checkFunc func(context.Context, health.Spec, func(health.Event))

// healthSpec says how to watch a container that has come as far as rec says.
func (i *instance) healthSpec(rec record) health.Spec {
	spec := health.Spec{
		Check: first(i.spec.Checks.Liveness), Readiness: first(i.spec.Checks.Readiness),
		StartTimeout: i.spec.StartTimeout,
		Healthy:      rec.Phase == lrp.PhaseRunning,
		Log:          func(l health.Line) { i.line(l.Source, l.Err, l.Text) },
	}
	spec.Address, _ = netip.ParseAddr(rec.Address) // written by ourselves
	if spec.StartTimeout > 0 {
		// What an earlier daemon waited counts.
		spec.StartTimeout = max(time.Until(rec.StartedAt.Add(spec.StartTimeout)), time.Second)
	}
	return spec
}

func first(all []lrp.Check) lrp.Check {
	if len(all) == 0 {
		return lrp.Check{}
	}
	return all[0]
}
