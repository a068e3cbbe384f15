package api

import (
	"cupola/server/authz"
	"cupola/store"
	"cupola/store/cf"
)

// target is what an audit event is about.
type target struct {
	kind, guid, name string
	place            authz.Place
}

// event records what the actor did, in the transaction in which it is done.
func (c *call) event(kind string, t target, data doc) error {
	if data == nil {
		data = doc{}
	}
	return store.Events.Insert(c.Tx, &cf.Event{Type: kind, Actor: c.who(),
		TargetType: t.kind, TargetGUID: t.guid, TargetName: t.name, SpaceGUID: t.place.SpaceGUID, OrgGUID: t.place.OrgGUID, Data: data})
}

// who is the actor, for rows that remember who made them.
func (c *call) who() cf.Actor {
	return cf.Actor{GUID: c.Actor.GUID, Type: c.Actor.Type, Name: c.Actor.Name}
}

// appEvent records an event of an app.
func (c *call) appEvent(kind string, app *cf.App, data doc) error {
	space, err := store.Spaces.Get(c.Tx, app.SpaceGUID)
	if err != nil {
		return err
	}
	return c.event(kind, target{"app", app.GUID, app.Name, authz.Place{OrgGUID: space.OrgGUID, SpaceGUID: space.GUID}}, data)
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
