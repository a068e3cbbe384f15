package server

import (
	"cupola/server/router"
	"cupola/store"
	"cupola/store/cf"
)

// guarded are the names of the domains that enforce policies.
func guarded(domains []*cf.Domain) (names []string) {
	for _, d := range domains {
		if d.EnforcesPolicies {
			names = append(names, d.Name)
		}
	}
	return names
}

// placesOf tells where apps are, by their GUIDs; nothing while no domain asks.
func placesOf(tx *store.Tx, domains []*cf.Domain) (map[string]router.Place, error) {
	if len(guarded(domains)) == 0 {
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

// place tells policies where apps are.
func place(t *router.Table, places map[string]router.Place) {
	for i := range t.Routes {
		if p := t.Routes[i].Policy; p != nil {
			p.Places = places
		}
	}
}
