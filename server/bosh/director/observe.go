package director

import (
	"cmp"
	"slices"
	"strings"

	"cupola/runtime/lrp"
	"cupola/store"
	"cupola/store/cf"
)

// Observed is an instance with what runs of it now.
type Observed struct {
	*cf.BOSHInstance
	State   string        // the phase, or failing
	Address string        // "": it has none
	Actuals []*lrp.Actual // of its processes
}

// All returns all deployments by name: also those whose first deploy runs and has written no row yet, which have a name only.
func All(tx *store.Tx) ([]*cf.BOSHDeployment, error) {
	all, err := store.BOSHDeployments.All(tx)
	if err != nil {
		return nil, err
	}
	open, err := store.BOSHTasks.Open(tx)
	if err != nil {
		return nil, err
	}
	for _, t := range open {
		isNew := !slices.ContainsFunc(all, func(d *cf.BOSHDeployment) bool { return d.Name == t.DeploymentName })
		if isNew && t.Kind == string(Deploy) && t.State == cf.BOSHProcessing {
			all = append(all, &cf.BOSHDeployment{Name: t.DeploymentName})
		}
	}
	slices.SortFunc(all, func(a, b *cf.BOSHDeployment) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Observe returns the instances of a deployment by group and index.
func Observe(tx *store.Tx, d *cf.BOSHDeployment) ([]Observed, error) {
	rows, err := store.BOSHInstances.By(tx, "deployment_guids", d.GUID)
	if err != nil {
		return nil, err
	}
	actuals, err := store.ActualLRPs.By(tx, "domains", lrp.BOSHDomain(d.Name))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b *cf.BOSHInstance) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), a.Index-b.Index)
	})
	var all []Observed
	for _, r := range rows {
		all = append(all, observe(r, actuals))
	}
	return all, nil
}

func observe(r *cf.BOSHInstance, actuals []*lrp.Actual) Observed {
	o := Observed{BOSHInstance: r, State: string(r.Phase)}
	ready := true
	for _, a := range actuals {
		if a.Owner.GUID != r.GUID || !strings.HasSuffix(a.ProcessGUID, "."+r.Digest) {
			continue
		}
		ready = ready && a.Routable()
		o.Address = cmp.Or(a.Address, o.Address)
		o.Actuals = append(o.Actuals, a)
	}
	if r.Phase == cf.BOSHRunning && !ready {
		o.State = "failing"
	}
	return o
}
