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
