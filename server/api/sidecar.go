package api

import (
	"slices"

	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/store"
	"cupola/store/cf"
)

func viewSidecar(_ *call, s *apps.Sidecar) doc {
	return with(resource(cf.Resource{GUID: s.GUID, CreatedAt: s.App.CreatedAt}), doc{
		"name": s.Name, "command": s.Command, "process_types": s.ProcessTypes, "memory_in_mb": zeroNil(s.MemoryMB), "origin": s.Origin,
		"relationships": doc{"app": toOne(s.App.GUID)},
	})
}

// sidecarRows is what parseQuery knows of sidecars.
type sidecarRows struct{ noRows }

func (sidecarRows) Orders() []string { return []string{"created_at", "updated_at"} }

// listSidecars answers with a page of sidecars.
func listSidecars(c *call, found []*apps.Sidecar) (*response, error) {
	q, err := parseQuery(c, sidecarRows{})
	if err != nil {
		return nil, err
	}
	if q.Desc { // all of an app are as old as each other
		slices.Reverse(found)
	}
	return ok(page(c, q, window(found, q), len(found), viewSidecar))
}

func listProcessSidecars(c *call) (*response, error) {
	p, app, err := processOf(c)
	if err != nil {
		return nil, err
	}
	return listSidecars(c, apps.Sidecars(app, p))
}

func listAppSidecars(c *call) (*response, error) {
	app, err := findApp(c)
	if err != nil {
		return nil, err
	}
	processes, err := store.Processes.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return nil, err
	}
	return listSidecars(c, apps.Sidecars(app, processes...))
}

// findSidecar finds the sidecar of {guid}, if the actor sees its app and satisfies
// the rule.
func findSidecar(c *call) (*apps.Sidecar, error) {
	processes, err := store.Processes.Matching(c.Tx, store.Query{Where: map[string][]string{"sidecar_guids": {c.guid()}}, Visible: c.Scope})
	if err != nil {
		return nil, err
	}
	if len(processes) == 0 {
		return nil, cf.Errorf(cf.ResourceNotFound, "Sidecar not found")
	}
	app, err := c.App(processes[0].AppGUID)
	if err != nil {
		return nil, err
	}
	all := apps.Sidecars(app, processes...)
	return all[slices.IndexFunc(all, func(s *apps.Sidecar) bool { return s.GUID == c.guid() })], nil
}

func createSidecar(c *call) (*response, error) {
	app, err := findApp(c)
	if err != nil {
		return nil, err
	}
	var req apps.SidecarChange
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	s := &apps.Sidecar{Sidecar: cf.Sidecar{GUID: control.NewGUID(), Origin: "user"}, App: app}
	if err := apps.ChangeSidecar(c.Session, s, req); err != nil {
		return nil, err
	}
	return created(viewSidecar(c, s))
}
