package director

import (
	"slices"
	"strings"

	"cupola/runtime/lrp"
	"cupola/server/bosh/agent"
	"cupola/store"
	"cupola/store/cf"
)

// load reads the world of a task that is prepared.
func (l *Loop) load(tx *store.Tx, t *cf.BOSHTask) (World, error) {
	w := World{Now: tx.Now, Task: *t}
	var err error
	if w.Plan, err = decodePlan(t.Plan); err != nil {
		return w, err
	}
	d, err := store.BOSHDeployments.First(tx, store.Query{Where: map[string][]string{"names": {t.DeploymentName}}})
	if err != nil {
		return w, err
	}
	rows, err := store.BOSHInstances.By(tx, "deployment_guids", d.GUID)
	if err != nil {
		return w, err
	}
	actuals, err := store.ActualLRPs.By(tx, "domains", lrp.BOSHDomain(d.Name))
	if err != nil {
		return w, err
	}
	slices.SortFunc(rows, func(a, b *cf.BOSHInstance) int {
		if c := strings.Compare(a.Group, b.Group); c != 0 {
			return c
		}
		return a.Index - b.Index
	})
	for _, r := range rows {
		i, err := l.seen(tx, r, actuals)
		if err != nil {
			return w, err
		}
		w.Instances = append(w.Instances, i)
	}
	return w, nil
}

// seen is an instance with what is seen of it.
func (l *Loop) seen(tx *store.Tx, r *cf.BOSHInstance, actuals []*lrp.Actual) (i Instance, err error) {
	i.BOSHInstance = *r
	if i.Spec, err = l.specs.get(tx, r.Digest); err != nil {
		return i, err
	}
	if i.Next, err = l.specs.get(tx, r.Next); err != nil {
		return i, err
	}
	calls, err := store.BOSHCalls.By(tx, "instance_guids", r.GUID)
	for _, c := range calls {
		i.Calls = append(i.Calls, *c)
	}
	if i.Spec != nil {
		i.Running, i.Empty = Observed(agent.Instance{Spec: *i.Spec, Digest: r.Digest}, actuals)
	} else {
		i.Empty = true
	}
	return i, err
}

// Observed tells whether all processes of an instance run and are ready, and
// whether nothing of them is left.
func Observed(i agent.Instance, actuals []*lrp.Actual) (running, empty bool) {
	running, empty = true, true
	for _, guid := range i.Processes() {
		at := slices.IndexFunc(actuals, func(a *lrp.Actual) bool { return a.ProcessGUID == guid })
		if at < 0 {
			running = false
			continue
		}
		empty = false
		a := actuals[at]
		running = running && a.State == lrp.Running && a.Ready && !a.Stopping
	}
	return running, empty
}
