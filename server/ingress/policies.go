package ingress

import (
	"slices"

	"cupola/server/router"
	"cupola/store"
)

// sources are those of the policies by the GUIDs of their routes.
func (r *rows) sources() map[string][]string {
	sources := map[string][]string{}
	for _, p := range r.policies {
		sources[p.RouteGUID] = append(sources[p.RouteGUID], p.Source)
	}
	return sources
}

// loadPlaces reads where apps are that routes lead to in domains which let in
// only callers from near them.
func (r *rows) loadPlaces(tx *store.Tx) error {
	var near, guids []string
	for _, d := range r.domains {
		if d.EnforcesPolicies && d.PoliciesScope != "any" {
			near = append(near, d.GUID)
		}
	}
	for _, route := range r.routes {
		for _, to := range route.Destinations {
			if slices.Contains(near, route.DomainGUID) {
				guids = append(guids, to.AppGUID)
			}
		}
	}
	apps, err := store.Apps.By(tx, "guids", guids...)
	if err != nil {
		return err
	}
	guids = nil
	for _, a := range apps {
		guids = append(guids, a.SpaceGUID)
	}
	spaces, err := store.Spaces.By(tx, "guids", guids...)
	orgs := map[string]string{}
	for _, s := range spaces {
		orgs[s.GUID] = s.OrgGUID
	}
	r.places = map[string]router.Place{}
	for _, a := range apps {
		r.places[a.GUID] = router.Place{OrgGUID: orgs[a.SpaceGUID], SpaceGUID: a.SpaceGUID}
	}
	return err
}
