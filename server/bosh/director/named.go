package director

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cupola/runtime/suggest"
	"cupola/server/bosh/agent"
	"cupola/server/bosh/link"
	"cupola/server/bosh/manifest"
	"cupola/store"
	"cupola/store/cf"
)

// named returns a deployment with its instances. It returns an error that
// callers can act on if the order names an unknown group, instance or errand, or
// deletes what others use.
func named(tx *store.Tx, deployment string, kind Kind, o Order) (*cf.BOSHDeployment, []*cf.BOSHInstance, error) {
	d, err := store.BOSHDeployments.First(tx, store.Query{Where: map[string][]string{"names": {deployment}}})
	if err != nil {
		return nil, nil, err
	}
	rows, err := store.BOSHInstances.By(tx, "deployment_guids", d.GUID)
	if err == nil {
		err = checkInstances(deployment, rows, o)
	}
	if err == nil {
		_, _, err = errandNamed(tx, rows, o.Errand)
	}
	if err == nil && kind == ExportRelease {
		err = o.Export.check(tx, d)
	}
	if err == nil && kind == Delete && !o.Force {
		err = checkConsumers(tx, deployment)
	}
	return d, rows, err
}

// consumersOf returns the deployments that use links of another one, quoted, and those
// links.
func consumersOf(tx *store.Tx, deployment string) (consumers []string, links map[string][]cf.BOSHLink, err error) {
	all, err := store.BOSHDeployments.All(tx)
	links = map[string][]cf.BOSHLink{}
	for _, d := range all {
		for _, l := range d.Consumes {
			if l.Deployment == deployment && d.Name != deployment {
				name := "'" + d.Name + "'"
				links[name] = append(links[name], l)
			}
		}
	}
	return slices.Sorted(maps.Keys(links)), links, err
}

// checkConsumers refuses to delete a deployment whose links another one uses.
func checkConsumers(tx *store.Tx, deployment string) error {
	consumers, _, err := consumersOf(tx, deployment)
	if err != nil || consumers == nil {
		return err
	}
	return cf.Unprocessable("Deployment '%s' shares links with %s: delete these deployments first, or delete it with force", deployment, strings.Join(consumers, ", "))
}

// checkProvided refuses a deploy that removes a link which another deployment uses.
func (d *deploy) checkProvided(tx *store.Tx) error {
	if d.order.Force {
		return nil
	}
	consumers, links, err := consumersOf(tx, d.m.Name)
	if err != nil {
		return err
	}
	var faults []error
	for _, name := range consumers {
		for _, l := range links[name] {
			if l.Name != "" && !link.Foreign(l).In(d.resolved.Provides) {
				faults = append(faults, fmt.Errorf("deployment %s uses the shared link '%s' of type '%s', which '%s' would no longer provide: change that deployment first, or deploy with force",
					name, l.Name, l.Type, d.m.Name))
			}
		}
	}
	return errors.Join(faults...)
}

func checkInstances(deployment string, rows []*cf.BOSHInstance, o Order) error {
	if o.Group == "" {
		return nil
	}
	all := groups(rows, func(*cf.BOSHInstance) bool { return true })
	if !slices.Contains(all, o.Group) {
		return cf.Unprocessable("Instance group '%s' doesn't exist in deployment '%s'%s", o.Group, deployment, suggest.Hint(o.Group, all))
	}
	if o.Index == nil {
		return nil
	}
	last := 0
	for _, r := range rows {
		if r.Group != o.Group {
			continue
		}
		if r.Index == *o.Index {
			return nil
		}
		last = max(last, r.Index)
	}
	return cf.Unprocessable("'%s/%s/%d' doesn't exist: the last instance of the group is %s/%d", deployment, o.Group, *o.Index, o.Group, last)
}

// errandNamed finds what a user calls an errand: an instance group of errands, or a job
// that one of them has, or that has bin/run on the instances of a service. "" is neither.
func errandNamed(tx *store.Tx, rows []*cf.BOSHInstance, name string) (group, job string, err error) {
	all := groups(rows, isErrand)
	if name == "" || slices.Contains(all, name) {
		return name, "", nil
	}
	jobs, err := errandJobs(tx, rows)
	if err != nil {
		return "", "", err
	}
	if slices.Contains(jobs, name) {
		return "", name, nil
	}
	return "", "", cf.Unprocessable("Errand '%s' doesn't exist%s", name, suggest.Hint(name, slices.Concat(all, jobs)))
}

// Errands names what can run as an errand in a deployment: instance groups of errands,
// and jobs.
func Errands(tx *store.Tx, d *cf.BOSHDeployment) ([]string, error) {
	rows, err := store.BOSHInstances.By(tx, "deployment_guids", d.GUID)
	if err != nil {
		return nil, err
	}
	names, err := errandJobs(tx, rows)
	names = append(names, groups(rows, isErrand)...)
	slices.Sort(names)
	return slices.Compact(names), err
}

func isErrand(r *cf.BOSHInstance) bool { return r.Lifecycle != string(manifest.Service) }

// errandJobs names the jobs that can run as an errand.
func errandJobs(tx *store.Tx, rows []*cf.BOSHInstance) (names []string, err error) {
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.Group] {
			continue
		}
		seen[r.Group] = true
		row, err := store.BOSHSpecs.Get(tx, r.Next)
		if store.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		spec, err := agent.Decode(row.Text)
		if err != nil {
			continue // it cannot run, and other groups can
		}
		names = append(names, spec.With(agent.Errand)...)
		if r.Lifecycle != string(manifest.Service) {
			for _, c := range spec.ErrandCalls() {
				names = append(names, c.Job)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// groups names, sorted, the groups of some instances.
func groups(rows []*cf.BOSHInstance, of func(*cf.BOSHInstance) bool) (names []string) {
	for _, r := range rows {
		if of(r) {
			names = append(names, r.Group)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
