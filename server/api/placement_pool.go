package api

import (
	"cupola/store"
	"cupola/store/cf"
)

func viewPool(c *call, p *cf.PlacementPool) doc {
	return with(resource(p.Resource), doc{
		"name": p.Name, "require": orNone(p.Require), "disallow": orNone(p.Disallow), "default": p.Default, "metadata": metadata(p.Metadata),
		"relationships": doc{"spaces": toMany(spacesWith(c, "placement_pool_guids", p.GUID)), "apps": toMany(appsOfPool(c, p))},
		"links":         doc{"self": c.link("/v3/placement_pools/%s", p.GUID)},
	})
}

// orNone is list, never null.
func orNone(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func viewPoolSpaces(c *call, p *cf.PlacementPool) doc {
	return with(toMany(spacesWith(c, "placement_pool_guids", p.GUID)), doc{"links": doc{"self": c.link("/v3/placement_pools/%s/relationships/spaces", p.GUID)}})
}

func appsOfPool(c *call, p *cf.PlacementPool) []string {
	return guidsOf(c, store.Apps, "placement_pool_guids", p.GUID, func(a *cf.App) string { return a.GUID })
}

func viewPoolApps(c *call, p *cf.PlacementPool) doc {
	return with(toMany(appsOfPool(c, p)), doc{"links": doc{"self": c.link("/v3/placement_pools/%s/relationships/apps", p.GUID)}})
}

var findPool = ofPlatform(store.PlacementPools)
