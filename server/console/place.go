package console

import (
	"context"
	"maps"
	"slices"

	"cupola/store"
	"cupola/store/cf"
)

// learn reads the places of what changes name and the feed has not met.
func (f *feed) learn(ctx context.Context, changes []change) error {
	processes, apps, instances := map[string]bool{}, map[string]bool{}, map[string]bool{}
	want := func(set map[string]bool, guid string) {
		if guid != "" && guid != anyGUID && f.places[guid] == "" {
			set[guid] = true
		}
	}
	for _, c := range changes {
		switch c.Kind {
		case "event": // its place is in its row
		case "instance":
			want(processes, c.GUID)
		default:
			want(apps, c.App)
			want(instances, c.instance)
		}
	}
	if len(processes)+len(apps)+len(instances) == 0 {
		return nil
	}
	return f.store.Read(ctx, func(tx *store.Tx) error {
		err := each(tx, store.Processes, processes, func(p *cf.Process) {
			f.places[p.GUID] = p.AppGUID
			want(apps, p.AppGUID)
		})
		if err == nil {
			err = each(tx, store.Apps, apps, func(a *cf.App) { f.places[a.GUID] = a.SpaceGUID })
		}
		if err == nil {
			err = each(tx, store.ServiceInstances, instances, func(i *cf.ServiceInstance) { f.places[i.GUID] = i.SpaceGUID })
		}
		return err
	})
}

// readAtOnce is how many rows one query names.
const readAtOnce = 500

func each[T any](tx *store.Tx, t *store.Table[T], guids map[string]bool, use func(*T)) error {
	for some := range slices.Chunk(slices.Collect(maps.Keys(guids)), readAtOnce) {
		rows, err := t.Where(tx, map[string][]string{"guids": some})
		if err != nil {
			return err
		}
		for _, r := range rows {
			use(r)
		}
	}
	return nil
}

// place completes the app and the space of a change.
func (f *feed) place(c *change) {
	switch {
	case c.Kind == "instance":
		c.App = f.places[c.GUID]
	case c.Kind == "event" && f.places[c.App] == "":
		c.App = "" // the event is of something else
	}
	if c.Space == "" {
		c.Space = f.places[c.App]
	}
	if c.Space == "" {
		c.Space = f.places[c.instance]
	}
	c.instance = "" // two bindings of one app differ by their GUIDs
}

// viewer is what a session's user may see.
type viewer struct {
	guid  string
	all   bool
	scope map[string]map[string]bool // kind of place → GUIDs
}

func newViewer(guid string, s *store.Scope) viewer {
	v := viewer{guid: guid, all: s == nil}
	if s == nil {
		return v
	}
	set := func(guids []string) map[string]bool {
		m := make(map[string]bool, len(guids))
		for _, g := range guids {
			m[g] = true
		}
		return m
	}
	v.scope = map[string]map[string]bool{"space": set(s.Spaces), "org": set(s.Orgs), "route": set(s.RouteSpaces), "eventspace": set(s.EventSpaces), "eventorg": set(s.EventOrgs)}
	return v
}

// show returns a change as the viewer may know it; ok is false when it is not the
// viewer's to know.
func (v viewer) show(c change) (_ change, ok bool) {
	in := func(kind, guid string) bool { return guid != "" && v.scope[kind][guid] }
	switch {
	case c.Kind == "session":
		return c, false
	case v.all, c.user != "" && c.user == v.guid: // a role of the viewer's
		return c, true
	case c.open:
		return change{Kind: c.Kind, GUID: anyGUID}, true
	case c.GUID == anyGUID: // many, of which nothing is known, or what only those see who see everything
		return c, c.many
	case c.Kind == "event":
		return c, in("eventspace", c.Space) || in("eventorg", c.org)
	case c.Kind == "route":
		return c, in("route", c.Space) || in("space", c.Space)
	case c.Kind == "org":
		return c, in("org", c.GUID)
	case c.Kind == "space":
		return c, in("space", c.GUID)
	case c.Space != "":
		return c, in("space", c.Space)
	case c.org != "":
		return c, in("org", c.org)
	}
	return c, c.Kind == "user" && c.GUID == v.guid
}
