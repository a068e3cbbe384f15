package api

import (
	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

func viewStack(c *call, s *cf.Stack) doc {
	return with(resource(s.Resource), doc{
		"name": s.Name, "description": s.Description, "state": s.State, "state_reason": control.OrNil(s.StateReason), "default": s.Default,
		"build_rootfs_image": s.Name, "run_rootfs_image": s.Name, "metadata": metadata(s.Metadata),
		"links": doc{"self": c.link("/v3/stacks/%s", s.GUID)},
	})
}

var findStack = ofPlatform(store.Stacks)

func listStackApps(c *call) (*response, error) {
	s, err := store.Stacks.Get(c.Tx, c.guid())
	if err != nil {
		return nil, err
	}
	return listRows(c, store.Apps, viewApp, matching("stacks", s.Name))
}
