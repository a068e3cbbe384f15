package deploy

import (
	"math"

	"cupola/store/cf"
)

// share is how a step of a canary deployment divides the instances.
type share struct {
	Canary   int // of the new web process
	Original int // of all others
}

// desiredInstances is how many instances a deployment ends with.
func desiredInstances(d *cf.Deployment) int {
	if n := d.Options.WebInstances; n != nil {
		return *n
	}
	return d.OriginalInstances
}

// FirstInstances is how many instances a deployment begins with.
func FirstInstances(d *cf.Deployment) int {
	n := desiredInstances(d)
	if d.Strategy == cf.Canary {
		n = canaryStep(d).Canary
	}
	return min(d.Options.MaxInFlight, n)
}

// canaryStep is the current step of a canary deployment. Without weights there
// is one step, of one instance besides all that were there.
func canaryStep(d *cf.Deployment) share {
	if len(d.Options.Weights) == 0 {
		return share{1, d.OriginalInstances}
	}
	n := d.OriginalInstances
	if d.Options.WebInstances != nil {
		n = min(n, *d.Options.WebInstances)
	}
	weight := d.Options.Weights[min(max(d.CanaryStep, 1), len(d.Options.Weights))-1]
	canary := max(1, int(math.Round(float64(n)*float64(weight)/100)))
	if weight == 100 {
		return share{canary, 0}
	}
	return share{canary, n - canary + 1}
}
