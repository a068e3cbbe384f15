package api

import (
	"cupola/server/control/apps"
	"cupola/store"
)

// deleteInstance replaces an instance.
func deleteInstance(c *call) (*response, error) {
	p, app, err := processOf(c)
	if err != nil {
		return nil, err
	}
	index, err := apps.TerminateInstance(c.Session, app, p, c.param("index"))
	if err != nil {
		return nil, err
	}
	c.Then(func() { c.s.Retire(p, app, index) })
	return noContent()
}

// clearBuildCache forgets what the stagings of an app left for the next one.
func clearBuildCache(c *call) (*response, error) {
	app, err := findApp(c)
	if err != nil {
		return nil, err
	}
	if err := apps.ClearBuildCache(c.Session, app); err != nil {
		return nil, err
	}
	return c.accepted("buildpack_cache.delete", "apps", app.GUID)
}

// clearAllBuildCaches is the same for all apps.
func clearAllBuildCaches(c *call) (*response, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	if err := store.BuildCaches.Clear(c.Tx); err != nil {
		return nil, err
	}
	return c.accepted("admin.clear_buildpack_cache", "", "")
}
