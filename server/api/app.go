package api

import (
	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/store"
	"cupola/store/cf"
)

func viewApp(c *call, a *cf.App) doc {
	self := "/v3/apps/" + a.GUID
	return with(with(resource(a.Resource), apps.Shown(a)), doc{
		"lifecycle": viewLifecycle(a.Lifecycle, a.Credentials), "metadata": metadata(a.Metadata),
		"relationships": doc{"space": toOne(a.SpaceGUID), "current_droplet": toOne(a.DropletGUID)},
		"links": doc{
			"self":                  c.link("%s", self),
			"environment_variables": c.link("%s/environment_variables", self),
			"space":                 c.link("/v3/spaces/%s", a.SpaceGUID),
			"processes":             c.link("%s/processes", self),
			"packages":              c.link("%s/packages", self),
			"current_droplet":       c.link("%s/droplets/current", self),
			"droplets":              c.link("%s/droplets", self),
			"tasks":                 c.link("%s/tasks", self),
			"start":                 c.action("POST", "%s/actions/start", self),
			"stop":                  c.action("POST", "%s/actions/stop", self),
			"clear_buildpack_cache": c.action("POST", "%s/actions/clear_buildpack_cache", self),
			"revisions":             c.link("%s/revisions", self),
			"deployed_revisions":    c.link("%s/revisions/deployed", self),
			"features":              c.link("%s/features", self),
		},
	})
}

func viewCurrentDroplet(c *call, app *cf.App) doc {
	return doc{"data": doc{"guid": app.DropletGUID}, "links": doc{
		"self":    c.link("/v3/apps/%s/relationships/current_droplet", app.GUID),
		"related": c.link("/v3/apps/%s/droplets/current", app.GUID)}}
}

func currentDropletRelationship(c *call) (*response, error) {
	app, err := findApp(c)
	if err != nil {
		return nil, err
	}
	if app.DropletGUID == "" {
		return nil, cf.Errorf(cf.ResourceNotFound, "Droplet not found")
	}
	return ok(viewCurrentDroplet(c, app))
}

const appIncludes = "include=space|org|space.organization"

func includeOfApps(c *call, rows []*cf.App, what string) (string, []doc, error) {
	spaces := control.GUIDs(rows, func(a *cf.App) string { return a.SpaceGUID })
	if what == "space" {
		docs, err := including(c, store.Spaces, viewSpace, spaces)
		return "spaces", docs, err
	}
	docs, err := includingOrgsOf(c, spaces)
	return "organizations", docs, err
}

var listApps = inTx(func(c *call) (*response, error) {
	return listIncluding(c, store.Apps, viewApp, includeOfApps, appIncludes)
})

func views[T any](c *call, rows []*T, v view[T]) []doc {
	out := []doc{}
	for _, r := range rows {
		out = append(out, v(c, r))
	}
	return out
}
