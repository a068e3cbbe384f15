package api

import (
	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

func viewBuildpack(c *call, b *cf.Buildpack) doc {
	self := "/v3/buildpacks/" + b.GUID
	return with(resource(b.Resource), doc{
		"name": b.Name, "stack": control.OrNil(b.Stack), "state": b.State, "lifecycle": b.Lifecycle, "filename": control.OrNil(b.Filename),
		"position": b.Position, "enabled": b.Enabled, "locked": b.Locked, "metadata": metadata(b.Metadata),
		"links": doc{"self": c.link("%s", self), "upload": c.action("POST", "%s/upload", self)},
	})
}

// listBuildpacks lists in the order in which buildpacks are tried.
var listBuildpacks = inTx(func(c *call) (*response, error) {
	return listRows(c, store.Buildpacks, viewBuildpack, func(q *listQuery) error {
		if q.Order == "" {
			q.Order = "position"
		}
		return nil
	})
})

var findBuildpack = ofPlatform(store.Buildpacks)
