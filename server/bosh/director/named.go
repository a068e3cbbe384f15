package director

import (
	"slices"
	"strings"

	"cupola/runtime/suggest"
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
		err = checkErrand(rows, o.Errand)
	}
	if err == nil && kind == Delete && !o.Force {
		err = checkConsumers(tx, deployment)
	}
	return d, rows, err
}

// checkConsumers refuses to delete a deployment whose links another one uses.
func checkConsumers(tx *store.Tx, deployment string) error {
	all, err := store.BOSHDeployments.All(tx)
	var consumers []string
	for _, d := range all {
		if d.Name != deployment && slices.Contains(d.Consumes, deployment) {
			consumers = append(consumers, "'"+d.Name+"'")
		}
	}
	if err != nil || consumers == nil {
		return err
	}
	slices.Sort(consumers)
	return cf.Unprocessable("Deployment '%s' shares links with %s: delete these deployments first, or delete it with force", deployment, strings.Join(consumers, ", "))
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

func checkErrand(rows []*cf.BOSHInstance, errand string) error {
	all := groups(rows, func(r *cf.BOSHInstance) bool { return r.Lifecycle != string(manifest.Service) })
	if errand == "" || slices.Contains(all, errand) {
		return nil
	}
	return cf.Unprocessable("Errand '%s' doesn't exist%s", errand, suggest.Hint(errand, all))
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
