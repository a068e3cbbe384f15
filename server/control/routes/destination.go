package routes

import (
	"cmp"
	"slices"
	"strings"

	"cupola/runtime/contract"
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// PortOf is the port that a destination leads to.
func PortOf(d cf.Destination) int { return cmp.Or(d.Port, contract.DefaultPort) }

// MaxDestinations is how many a route can have (Cloud Controller).
const MaxDestinations = 100

// Protocols are what a destination may speak.
var Protocols = []string{"http1", "http2", "tcp"}

// sameDestination reports whether two lead to the same port of the same process.
func sameDestination(a, b cf.Destination) bool {
	return a.AppGUID == b.AppGUID && a.ProcessType == b.ProcessType && a.Port == b.Port
}

// Complete gives new destinations the defaults of their apps and route, and
// refuses those that the route cannot have.
func Complete(c *control.Session, r *cf.Route, wanted []cf.Destination) (map[string]*cf.App, error) {
	apps, err := destinationApps(c, r, wanted)
	if err != nil {
		return nil, err
	}
	d, err := store.Domains.Get(c.Tx, r.DomainGUID)
	if err != nil {
		return nil, err
	}
	for i := range wanted {
		w := &wanted[i]
		if err := complete(w, apps[w.AppGUID], d); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(wanted[:i], func(o cf.Destination) bool { return sameDestination(o, *w) }) {
			return nil, cf.Unprocessable("Destinations cannot contain duplicate entries")
		}
	}
	return apps, nil
}

// complete gives a destination the defaults of its app and of its route's domain.
func complete(w *cf.Destination, app *cf.App, d *cf.Domain) error {
	if w.Port == contract.DefaultPort && app.Lifecycle.Type != cf.LifecycleDocker {
		w.Port = 0 // as those that name none
	}
	if w.Protocol == "" {
		w.Protocol = map[string]string{"tcp": "tcp", "http": "http1"}[d.Protocol()]
	}
	if (w.Protocol == "tcp") != d.TCP() {
		valid := map[string]string{"tcp": "tcp", "http": "http1, http2"}[d.Protocol()]
		return cf.Unprocessable("Cannot use '%s' protocol for %s routes; valid options are: [%s].", w.Protocol, d.Protocol(), valid)
	}
	return nil
}

// destinationApps are the apps of new destinations by their GUIDs.
func destinationApps(c *control.Session, r *cf.Route, wanted []cf.Destination) (map[string]*cf.App, error) {
	guids, apps, err := appsOf(c, wanted)
	except := func(fits func(*cf.App) bool) []string {
		return control.Without(guids, func(g string) bool { return fits(apps[g]) })
	}
	if missing := except(func(a *cf.App) bool { return a != nil }); err != nil || len(missing) > 0 {
		return nil, control.OrElse(err, cf.Unprocessable(`App(s) with guid(s) "%s" do not exist.`, strings.Join(missing, `", "`)))
	}
	if hidden := except(func(a *cf.App) bool { return c.Scope == nil || slices.Contains(c.Scope.Spaces, a.SpaceGUID) }); len(hidden) > 0 {
		return nil, cf.Unprocessable(`App(s) with guid(s) "%s" you do not have access.`, strings.Join(hidden, `", "`))
	}
	if len(except(func(a *cf.App) bool {
		return a.SpaceGUID == r.SpaceGUID || slices.Contains(r.SharedSpaces, a.SpaceGUID)
	})) > 0 {
		return nil, cf.Unprocessable("Routes destinations must be in either the route's space or the route's shared spaces")
	}
	return apps, nil
}

// appsOf are the apps that destinations name and that there are.
func appsOf(c *control.Session, wanted []cf.Destination) (guids []string, apps map[string]*cf.App, err error) {
	for _, d := range wanted {
		guids = append(guids, d.AppGUID)
	}
	rows, err := store.Apps.By(c.Tx, "guids", guids...)
	apps = map[string]*cf.App{}
	for _, app := range rows {
		apps[app.GUID] = app
	}
	return guids, apps, err
}

// Map adds destinations that the route does not have yet.
func Map(c *control.Session, r *cf.Route, wanted ...cf.Destination) error {
	apps, err := Complete(c, r, wanted)
	if err != nil {
		return err
	}
	if len(r.Destinations)+len(wanted) > MaxDestinations {
		return cf.Unprocessable("Routes can be mapped to at most 100 destinations.")
	}
	if slices.ContainsFunc(r.Destinations, func(d cf.Destination) bool { return d.Weight > 0 }) {
		return cf.Unprocessable("Destinations cannot be inserted when there are weighted destinations already configured.")
	}
	var added []cf.Destination
	for _, d := range wanted {
		i := slices.IndexFunc(r.Destinations, func(have cf.Destination) bool { return sameDestination(have, d) })
		if i < 0 {
			added = append(added, d)
			continue
		}
		if have := r.Destinations[i].Protocol; have != d.Protocol {
			return protocolTaken(c, r, d, have)
		}
	}
	r.Destinations = append(r.Destinations, added...)
	return save(c, r, func() error { return mapEvents(c, audit.AppMapRoute, r, added, apps) })
}

func protocolTaken(c *control.Session, r *cf.Route, d cf.Destination, have string) error {
	domain, err := store.Domains.Get(c.Tx, r.DomainGUID)
	return control.OrElse(err, cf.Unprocessable("Cannot add destination with protocol: %s. Destination already exists for route: %s, app: %s, process: %s, and protocol: %s.",
		d.Protocol, desire.URI(r, domain), d.AppGUID, d.ProcessType, have))
}

// Replace gives a route other destinations. Those that stay as they are
// keep their GUIDs.
func Replace(c *control.Session, r *cf.Route, wanted []cf.Destination) error {
	apps, err := Complete(c, r, wanted)
	if err != nil {
		return err
	}
	added, gone := keep(wanted, r.Destinations)
	r.Destinations = wanted
	return save(c, r, func() error {
		if err := mapEvents(c, audit.AppUnmapRoute, r, gone, nil); err != nil {
			return err
		}
		return mapEvents(c, audit.AppMapRoute, r, added, apps)
	})
}

// keep puts the destinations that a route has already in place of those wanted that are
// like them. It returns the wanted ones that are new, and those that are gone.
func keep(wanted, have []cf.Destination) (added, gone []cf.Destination) {
	gone = slices.Clone(have)
	for i, d := range wanted {
		at := slices.IndexFunc(gone, func(have cf.Destination) bool {
			return sameDestination(have, d) && have.Protocol == d.Protocol && have.Weight == d.Weight
		})
		if at < 0 {
			added = append(added, d)
			continue
		}
		wanted[i] = gone[at]
		gone = slices.Delete(gone, at, at+1)
	}
	return added, gone
}

// save writes a route whose destinations are others now; events
// tells of them.
func save(c *control.Session, r *cf.Route, events func() error) error {
	if err := events(); err != nil {
		return err
	}
	warnOfPort(c, r)
	return store.Routes.Update(c.Tx, r)
}

// mapEvents records an event for the app of each destination. It looks up apps
// that are not in known, and skips those that are gone.
func mapEvents(c *control.Session, kind audit.Type, r *cf.Route, destinations []cf.Destination, known map[string]*cf.App) error {
	for _, d := range destinations {
		app := known[d.AppGUID]
		if app == nil {
			var err error
			if app, err = store.Apps.Get(c.Tx, d.AppGUID); store.IsNotFound(err) {
				continue
			} else if err != nil {
				return err
			}
		}
		if err := mapEvent(c, kind, app, r, d); err != nil {
			return err
		}
	}
	return nil
}

// mapEvent records that a route was mapped to a process of an app, or unmapped from it.
func mapEvent(c *control.Session, kind audit.Type, app *cf.App, r *cf.Route, d cf.Destination) error {
	var weight any
	if d.Weight > 0 {
		weight = d.Weight
	}
	port := PortOf(d)
	if d.Port == 0 && app.Lifecycle.Type == cf.LifecycleDocker {
		port = -1 // the image says (CC: ProcessModel::NO_APP_PORT_SPECIFIED)
	}
	data := audit.Data{"route_guid": r.GUID, "app_port": port, "route_mapping_guid": d.GUID, "destination_guid": d.GUID,
		"process_type": d.ProcessType, "weight": weight, "protocol": d.Protocol}
	if len(r.Options) > 0 {
		data["route_options"] = r.Options
	}
	return c.AuditApp(kind, app, c.Triggered(data))
}

// UnmapApp takes all destinations of an app from a route.
func UnmapApp(c *control.Session, r *cf.Route, app *cf.App) error {
	for _, d := range r.Destinations {
		if d.AppGUID != app.GUID {
			continue
		}
		if err := mapEvent(c, audit.AppUnmapRoute, app, r, d); err != nil {
			return err
		}
	}
	r.Destinations = control.Without(r.Destinations, func(d cf.Destination) bool { return d.AppGUID == app.GUID })
	return store.Routes.Update(c.Tx, r)
}

// find is the index of a destination of a route.
func find(r *cf.Route, guid string) (int, error) {
	i := slices.IndexFunc(r.Destinations, func(d cf.Destination) bool { return d.GUID == guid })
	if i < 0 {
		return 0, cf.Unprocessable("Unable to unmap route from destination. Ensure the route has a destination with this guid.")
	}
	return i, nil
}

// Unmap takes a destination from a route.
func Unmap(c *control.Session, r *cf.Route, guid string) error {
	i, err := find(r, guid)
	if err != nil {
		return err
	}
	gone := r.Destinations[i]
	if gone.Weight > 0 {
		return cf.Unprocessable("Weighted destinations cannot be deleted individually.")
	}
	r.Destinations = slices.Delete(r.Destinations, i, i+1)
	if err := mapEvents(c, audit.AppUnmapRoute, r, []cf.Destination{gone}, nil); err != nil {
		return err
	}
	return store.Routes.Update(c.Tx, r)
}

// SetProtocol changes what a destination speaks, if that is given, and returns
// its index.
func SetProtocol(c *control.Session, r *cf.Route, guid string, protocol change.Field[string]) (int, error) {
	i, err := find(r, guid)
	if err != nil {
		return 0, err
	}
	d, err := store.Domains.Get(c.Tx, r.DomainGUID)
	if err != nil {
		return 0, err
	}
	switch {
	case !protocol.Set:
	case !slices.Contains(Protocols, protocol.V):
		return 0, cf.Unprocessable("Destination protocol must be 'http1', 'http2' or 'tcp'.")
	case d.TCP() && protocol.V != "tcp":
		return 0, cf.Unprocessable("Destination protocol must be 'tcp' if the parent route's protocol is 'tcp'")
	case !d.TCP() && protocol.V == "tcp":
		return 0, cf.Unprocessable("Destination protocol must be 'http1' or 'http2' if the parent route's protocol is 'http'")
	default:
		r.Destinations[i].Protocol = protocol.V
	}
	return i, store.Routes.Update(c.Tx, r)
}
