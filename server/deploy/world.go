package deploy

import (
	"slices"
	"time"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// world is the input of a step.
type world struct {
	Now        time.Time
	App        cf.App
	Deployment cf.Deployment // ACTIVE
	Web        []webProcess  // the app's web processes, oldest first
	Others     []cf.Process  // the app's other processes
	Revision   *cf.Revision  // of the deployment; nil without
	// Superseded are the states of the deployments that another one took the
	// place of, by the GUID of the web process that each made.
	Superseded map[string]cf.DeploymentState
}

// webProcess is a web process with its instances of now.
type webProcess struct {
	cf.Process
	Actuals []*lrp.Actual // of the app's and the process' revision
}

// change is what a step changes. The zero value changes nothing.
type change struct {
	Deployment *cf.Deployment
	Update     []cf.Process
	Delete     []string // GUIDs of processes
}

// empty reports whether there is nothing to write.
func (c change) empty() bool {
	return c.Deployment == nil && len(c.Update) == 0 && len(c.Delete) == 0
}

// count counts the instances of a process by state.
type count struct{ starting, routable, unhealthy int }

// routableAt reports whether the instance of an index is.
func (w webProcess) routableAt(index int) bool {
	return slices.ContainsFunc(w.Actuals, func(a *lrp.Actual) bool {
		return a.Index == index && a.Routable()
	})
}

// count counts the desired instances by state, as Cloud Controller's
// InstancesReporter does: one that is not there is DOWN.
func (w webProcess) count() (n count) {
	byIndex := map[int]*lrp.Actual{}
	for _, a := range w.Actuals {
		byIndex[a.Index] = a
	}
	for i := range w.Instances {
		a := byIndex[i]
		switch {
		case a == nil || a.Stopping || a.State == lrp.Crashed || a.State == lrp.Unclaimed && a.PlacementError != "":
			n.unhealthy++
		case a.Routable():
			n.routable++
		default:
			n.starting++
		}
	}
	return n
}
