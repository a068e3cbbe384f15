package ingress

import (
	"slices"

	"cupola/server/router"
	"cupola/store"
	"cupola/store/cf"
)

// sources are those of the policies by the GUIDs of their routes.
func (r *rows) sources() map[string][]string {
	sources := map[string][]string{}
	for _, p := range r.policies {
		sources[p.RouteGUID] = append(sources[p.RouteGUID], p.Source)
	}
	return sources
}

// placesOf tells where apps are, by their GUIDs; nothing while no domain enforces
// policies.
func placesOf(tx *store.Tx, domains []*cf.Domain) (map[string]router.Place, error) {
	if !slices.ContainsFunc(domains, func(d *cf.Domain) bool { return d.EnforcesPolicies }) {
		return nil, nil
	}
	spaces, err := store.Spaces.All(tx)
	if err != nil {
		return nil, err
	}
	orgs, places := map[string]string{}, map[string]router.Place{}
	for _, s := range spaces {
		orgs[s.GUID] = s.OrgGUID
	}
	apps, err := store.Apps.All(tx)
	for _, a := range apps {
		places[a.GUID] = router.Place{OrgGUID: orgs[a.SpaceGUID], SpaceGUID: a.SpaceGUID}
	}
	return places, err
}
