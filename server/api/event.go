package api

import (
	"cupola/server/control/audit"
	"cupola/store/cf"
)

// event records what the actor did, in the transaction in which it is done.
func (c *call) event(kind audit.Type, t audit.Target, data doc) error {
	return audit.Write(c.Tx, c.who(), kind, t, data)
}

// who is the actor, for rows that remember who made them.
func (c *call) who() cf.Actor {
	return cf.Actor{GUID: c.Actor.GUID, Type: c.Actor.Type, Name: c.Actor.Name}
}

// appEvent records an event of an app.
func (c *call) appEvent(kind audit.Type, app *cf.App, data doc) error {
	return audit.App(c.Tx, c.who(), kind, app, data)
}

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
