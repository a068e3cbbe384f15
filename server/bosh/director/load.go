package director

import (
	"slices"
	"strings"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/bosh/agent"
	"cupola/store"
	"cupola/store/cf"
)

// load reads the world of a task that is prepared.
func (l *Loop) load(tx *store.Tx, t *cf.BOSHTask) (w world, err error) {
	w.Now, w.Task = tx.Now, *t
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
	calls, err := callsOf(tx, rows)
	if err != nil {
		return w, err
	}
	for _, r := range rows {
		i, err := l.seen(tx, r, actuals)
		i.Calls = calls[r.GUID]
		if err != nil {
			return w, err
		}
		w.Instances = append(w.Instances, i)
	}
	return w, nil
}

// callsOf are the calls of instances, by their GUIDs.
func callsOf(tx *store.Tx, rows []*cf.BOSHInstance) (map[string][]cf.BOSHCall, error) {
	guids := guidsOf(rows)
	if guids == nil {
		return nil, nil
	}
	all, err := store.BOSHCalls.By(tx, "instance_guids", guids...)
	of := map[string][]cf.BOSHCall{}
	for _, c := range all {
		of[c.InstanceGUID] = append(of[c.InstanceGUID], *c)
	}
	return of, err
}

// seen is an instance with its observed state, without its calls.
func (l *Loop) seen(tx *store.Tx, r *cf.BOSHInstance, actuals []*lrp.Actual) (i instance, err error) {
	i.BOSHInstance = *r
	for _, of := range []struct {
		spec   **agent.Spec
		digest string
	}{{&i.Spec, r.Digest}, {&i.Next, r.Next}} {
		if *of.spec, err = l.specs.get(tx, of.digest); isBroken(err) {
			i.Fault, err = err.Error(), nil
		}
		if err != nil {
			return i, err
		}
	}
	if i.Spec != nil {
		of := agent.Instance{Spec: *i.Spec, Digest: r.Digest}
		i.Running, i.Empty = observed(of, actuals)
		i.RunsSince, i.Crashed = runsSince(of, actuals)
		i.Unmade = unmade(of, actuals)
		return i, nil
	}
	i.Empty = !slices.ContainsFunc(actuals, func(a *lrp.Actual) bool { return a.Owner.GUID == r.GUID })
	return i, nil
}

// unmade says why the container of a process could not be made; "" for no reason.
func unmade(i agent.Instance, actuals []*lrp.Actual) string {
	for _, a := range actuals {
		if !slices.Contains(i.Processes(), a.ProcessGUID) || a.State == lrp.Running {
			continue
		}
		if a.PlacementError != "" {
			return a.PlacementError
		}
		if a.CrashReason != "" && !ran(a.CrashReason) {
			return a.CrashReason
		}
	}
	return ""
}

// runsSince returns when the last process of an instance that runs began to, and whether
// one has crashed.
func runsSince(i agent.Instance, actuals []*lrp.Actual) (last time.Time, crashed bool) {
	for _, a := range actuals {
		if !slices.Contains(i.Processes(), a.ProcessGUID) {
			continue
		}
		crashed = crashed || a.CrashCount > 0
		if a.State == lrp.Running && a.Since.After(last) {
			last = a.Since
		}
	}
	return last, crashed
}

// observed reports whether all processes of an instance run and are ready, and
// whether nothing of them is left.
func observed(i agent.Instance, actuals []*lrp.Actual) (running, empty bool) {
	running, empty = true, true
	for _, guid := range i.Processes() {
		at := slices.IndexFunc(actuals, func(a *lrp.Actual) bool { return a.ProcessGUID == guid })
		if at < 0 {
			running = false
			continue
		}
		empty = false
		a := actuals[at]
		running = running && a.Routable()
	}
	return running, empty
}
