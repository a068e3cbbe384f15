package api

import (
	"cupola/store/cf"
)

func viewEvent(c *call, e *cf.Event) doc {
	return with(resource(e.Resource), doc{
		"type":         e.Type,
		"actor":        doc{"guid": e.Actor.GUID, "type": e.Actor.Type, "name": e.Actor.Name},
		"target":       doc{"guid": e.TargetGUID, "type": e.TargetType, "name": e.TargetName},
		"data":         e.Data,
		"space":        guidOrNil(e.SpaceGUID),
		"organization": guidOrNil(e.OrgGUID),
		"links":        doc{"self": c.link("/v3/audit_events/%s", e.GUID)},
	})
}

func guidOrNil(guid string) any {
	if guid == "" {
		return nil
	}
	return doc{"guid": guid}
}
