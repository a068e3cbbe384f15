package api

import (
	"slices"

	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/store"
	"cupola/store/cf"
)

func revisionApp(r *cf.Revision) string { return r.AppGUID }

var (
	findRevision  = anApps(store.Revisions, revisionApp)
	labelRevision = label(store.Revisions, func(r *cf.Revision) *cf.Metadata { return &r.Metadata })
)

func viewRevision(c *call, r *cf.Revision) doc {
	processes, sidecars := doc{}, []doc{}
	for t, command := range r.Commands {
		processes[t] = doc{"command": control.OrNil(command)}
	}
	for _, s := range r.Sidecars {
		sidecars = append(sidecars, doc{"name": s.Name, "command": s.Command, "memory_in_mb": zeroNil(s.MemoryMB), "process_types": s.ProcessTypes})
	}
	d, err := store.Droplets.Get(c.Tx, r.DropletGUID)
	self := "/v3/revisions/" + r.GUID
	return with(resource(r.Resource), doc{
		"version": r.Version, "droplet": doc{"guid": r.DropletGUID}, "processes": processes, "sidecars": sidecars, "description": r.Description,
		"deployable": err == nil && d.State == cf.DropletStaged, "metadata": metadata(r.Metadata),
		"relationships": doc{"app": toOne(r.AppGUID)},
		"links": doc{
			"self":                  c.link("%s", self),
			"app":                   c.link("/v3/apps/%s", r.AppGUID),
			"environment_variables": c.link("%s/environment_variables", self),
		},
	})
}

// listDeployedRevisions lists the revisions that processes of a started app
// have.
func listDeployedRevisions(c *call) (*response, error) {
	app, err := findApp(c)
	if err != nil {
		return nil, err
	}
	processes, err := store.Processes.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return nil, err
	}
	deployed := slices.DeleteFunc(control.GUIDs(processes, func(p *cf.Process) string { return p.RevisionGUID }), func(g string) bool { return g == "" })
	if app.State != cf.Started {
		deployed = nil
	}
	return listRows(c, store.Revisions, viewRevision, func(q *listQuery) error {
		q.Where["app_guids"], q.Where["guids"] = []string{app.GUID}, intersection(q.Where, "guids", deployed)
		return nil
	})
}

func showRevisionVars(c *call) (*response, error) {
	r, app, err := ofApp(c, store.Revisions, revisionApp)
	if err != nil {
		return nil, err
	}
	if err := apps.RevisionVarsShown(c.Session, app, r); err != nil {
		return nil, err
	}
	return ok(doc{"var": orEmpty(r.Env), "links": doc{
		"self":     c.link("/v3/revisions/%s/environment_variables", r.GUID),
		"revision": c.link("/v3/revisions/%s", r.GUID),
		"app":      c.link("/v3/apps/%s", r.AppGUID)}})
}
