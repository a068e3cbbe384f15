package api

import (
	"strconv"

	"cupola/server/control/audit"
	"cupola/store/cf"
)

// deleteInstance has an instance replaced.
func deleteInstance(c *call) (*response, error) {
	p, app, err := c.process()
	if err != nil {
		return nil, err
	}
	index, err := strconv.Atoi(c.param("index"))
	if err != nil || index < 0 || index >= p.Instances {
		return nil, cf.Errorf(cf.ResourceNotFound, "Instance not found")
	}
	if err := c.AuditApp(audit.AppProcessTerminateInstance, app, doc{"process_guid": p.GUID, "process_type": p.Type, "process_index": index}); err != nil {
		return nil, err
	}
	c.Then(func() { c.s.Retire(p, app, index) })
	return noContent()
}

// clearBuildCache forgets what the stagings of an app left for the next one.
func clearBuildCache(c *call) (*response, error) {
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	if err := c.Tx.ClearBuildCachesOf(app.GUID); err != nil {
		return nil, err
	}
	c.Note(app, "Enqueued job to delete app buildpack cache with app guid %s", app.GUID)
	return c.accepted("buildpack_cache.delete", "apps", app.GUID)
}

// clearAllBuildCaches is the same for all apps.
func clearAllBuildCaches(c *call) (*response, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	if err := c.Tx.ClearBuildCaches(); err != nil {
		return nil, err
	}
	return c.accepted("admin.clear_buildpack_cache", "", "")
}
