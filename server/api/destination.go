package api

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"cupola/runtime/contract"
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/store"
	"cupola/store/cf"
)

func viewDestinations(r *cf.Route) []doc {
	out := []doc{}
	for _, d := range r.Destinations {
		var weight any
		if d.Weight > 0 {
			weight = d.Weight
		}
		out = append(out, doc{"guid": d.GUID, "app": doc{"guid": d.AppGUID, "process": doc{"type": d.ProcessType}},
			"weight": weight, "port": cmp.Or(d.Port, contract.DefaultPort), "protocol": d.Protocol})
	}
	return out
}

// maxRouteDestinations is how many a route can have (Cloud Controller).
const maxRouteDestinations = 100

// destinationsRequest is the body of requests for several destinations; a type
// of its own each, since more is valid where all are replaced.
type destinationsRequest struct {
	Destinations []any `json:"destinations"`
}

// read gives the destinations, or what is wrong with them in Cloud Controller's
// words.
func (r destinationsRequest) read(replace bool) ([]cf.Destination, error) {
	least := 1
	if replace {
		least = 0
	}
	if r.Destinations == nil || len(r.Destinations) < least || len(r.Destinations) > maxRouteDestinations {
		return nil, cf.Unprocessable("Destinations must be an array containing between %d and %d destination objects.", least, maxRouteDestinations)
	}
	var list []cf.Destination
	var faults []string
	for i, v := range r.Destinations {
		f := &destinationFields{replace: replace}
		list = append(list, f.read(v))
		for _, text := range f.faults {
			faults = append(faults, fmt.Sprintf("Destinations[%d]: %s", i, text))
		}
	}
	if faults == nil {
		faults = weightFaults(list)
	}
	return list, control.Invalid(faults)
}

func weightFaults(list []cf.Destination) []string {
	sum, with := 0, 0
	for _, d := range list {
		sum += d.Weight
		if d.Weight > 0 {
			with++
		}
	}
	return control.Must(with == 0 || with == len(list), "Destinations cannot contain both weighted and unweighted destinations.",
		with == 0 || with < len(list) || sum == 100, "Destinations must have weights that sum to 100.")
}

// destinationFields reads one destination, and gathers what is wrong with it.
type destinationFields struct {
	replace bool
	faults  []string
}

func (f *destinationFields) check(ok bool, fault string) {
	f.faults = append(f.faults, control.Must(ok, fault)...)
}

func (f *destinationFields) read(v any) (d cf.Destination) {
	m, isObject := v.(map[string]any)
	if !isObject {
		f.check(false, "must be an object.")
		return d
	}
	app, there := m["app"]
	if !there {
		f.check(false, `must have an "app".`)
		return d
	}
	for key := range m {
		if !slices.Contains([]string{"app", "weight", "port", "protocol"}, key) {
			f.check(false, `must have only "app" and optionally "weight", "port" or "protocol".`)
			return d
		}
	}
	d.GUID = control.NewGUID()
	f.app(&d, app)
	if m["weight"] != nil {
		f.weight(&d, m["weight"])
	}
	if port := m["port"]; port != nil {
		n, whole := wholeNumber(port)
		f.check(whole && n >= 1024 && n <= 65535, "port must be a positive integer between 1024 and 65535 inclusive.")
		d.Port = n
	}
	if protocol := m["protocol"]; protocol != nil {
		d.Protocol, _ = protocol.(string)
		f.check(slices.Contains(destinationProtocols, d.Protocol), "protocol must be 'http1', 'http2' or 'tcp'.")
	}
	return d
}

func (f *destinationFields) app(d *cf.Destination, v any) {
	app, _ := v.(map[string]any)
	guid, _ := app["guid"].(string)
	if guid == "" || len(guid) >= 200 {
		f.check(false, `app must have the structure {"guid": "app_guid"}`)
		return
	}
	d.AppGUID, d.ProcessType = guid, "web"
	if app["process"] == nil {
		return
	}
	process, _ := app["process"].(map[string]any)
	kind, _ := process["type"].(string)
	f.check(kind != "" && len(process) == 1, `process must have the structure {"type": "process_type"}`)
	d.ProcessType = kind
}

func (f *destinationFields) weight(d *cf.Destination, v any) {
	n, whole := wholeNumber(v)
	f.check(f.replace, "weighted destinations can only be used when replacing all destinations.")
	f.check(!f.replace || whole && n > 0 && n <= 100, "weight must be a positive integer between 1 and 100.")
	d.Weight = n
}

func wholeNumber(v any) (int, bool) {
	n, ok := v.(float64)
	return int(n), ok && n == math.Trunc(n) && math.Abs(n) < 1<<31
}

// destinationProtocols are what a destination may speak.
var destinationProtocols = []string{"http1", "http2", "tcp"}

func addDestinations(c *call) (*response, error)     { return c.changeDestinations(false) }
func replaceDestinations(c *call) (*response, error) { return c.changeDestinations(true) }

func (c *call) changeDestinations(replace bool) (*response, error) {
	var req destinationsRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	wanted, err := req.read(replace)
	if err != nil {
		return nil, err
	}
	r, err := c.appRoute()
	if err != nil {
		return nil, err
	}
	if replace {
		err = c.replaceRoute(r, wanted)
	} else {
		err = c.mapRoute(r, wanted...)
	}
	if err != nil {
		return nil, err
	}
	return ok(c.destinations(r))
}

func (c *call) destinations(r *cf.Route) doc {
	return doc{"destinations": viewDestinations(r), "links": doc{
		"self": c.link("/v3/routes/%s/destinations", r.GUID), "route": c.link("/v3/routes/%s", r.GUID)}}
}

// sameDestination tells whether two lead to the same port of the same process.
func sameDestination(a, b cf.Destination) bool {
	return a.AppGUID == b.AppGUID && a.ProcessType == b.ProcessType && a.Port == b.Port
}

// complete gives new destinations the defaults of their apps and route, and
// refuses those that the route cannot have.
func (c *call) complete(r *cf.Route, wanted []cf.Destination) (map[string]*cf.App, error) {
	apps, err := c.destinationApps(r, wanted)
	if err != nil {
		return nil, err
	}
	d, err := store.Domains.Get(c.Tx, r.DomainGUID)
	if err != nil {
		return nil, err
	}
	for i := range wanted {
		w := &wanted[i]
		if w.Port == contract.DefaultPort && apps[w.AppGUID].Lifecycle.Type != cf.LifecycleDocker {
			w.Port = 0 // as those that name none
		}
		if w.Protocol == "" {
			w.Protocol = map[string]string{"tcp": "tcp", "http": "http1"}[d.Protocol()]
		}
		if (w.Protocol == "tcp") != d.TCP() {
			valid := map[string]string{"tcp": "tcp", "http": "http1, http2"}[d.Protocol()]
			return nil, cf.Unprocessable("Cannot use '%s' protocol for %s routes; valid options are: [%s].", w.Protocol, d.Protocol(), valid)
		}
		if slices.ContainsFunc(wanted[:i], func(o cf.Destination) bool { return sameDestination(o, *w) }) {
			return nil, cf.Unprocessable("Destinations cannot contain duplicate entries")
		}
	}
	return apps, nil
}

// destinationApps are the apps of new destinations by their GUIDs.
func (c *call) destinationApps(r *cf.Route, wanted []cf.Destination) (map[string]*cf.App, error) {
	apps := map[string]*cf.App{}
	var missing, hidden []string
	for _, d := range wanted {
		app, err := store.Apps.Get(c.Tx, d.AppGUID)
		if store.IsNotFound(err) {
			missing = append(missing, d.AppGUID)
			continue
		}
		if err != nil {
			return nil, err
		}
		if c.Scope != nil && !slices.Contains(c.Scope.Spaces, app.SpaceGUID) {
			hidden = append(hidden, d.AppGUID)
		}
		apps[d.AppGUID] = app
	}
	if missing != nil {
		return nil, cf.Unprocessable(`App(s) with guid(s) "%s" do not exist.`, strings.Join(missing, `", "`))
	}
	if hidden != nil {
		return nil, cf.Unprocessable(`App(s) with guid(s) "%s" you do not have access.`, strings.Join(hidden, `", "`))
	}
	for _, app := range apps {
		if app.SpaceGUID != r.SpaceGUID && !slices.Contains(r.SharedSpaces, app.SpaceGUID) {
			return nil, cf.Unprocessable("Routes destinations must be in either the route's space or the route's shared spaces")
		}
	}
	return apps, nil
}

// mapRoute adds destinations that the route does not have yet.
func (c *call) mapRoute(r *cf.Route, wanted ...cf.Destination) error {
	apps, err := c.complete(r, wanted)
	if err != nil {
		return err
	}
	if len(r.Destinations)+len(wanted) > maxRouteDestinations {
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
			return c.protocolTaken(r, d, have)
		}
	}
	r.Destinations = append(r.Destinations, added...)
	return c.saveDestinations(r, func() error { return c.mapEvents(audit.AppMapRoute, r, added, apps) })
}

func (c *call) protocolTaken(r *cf.Route, d cf.Destination, have string) error {
	domain, err := store.Domains.Get(c.Tx, r.DomainGUID)
	return control.OrElse(err, cf.Unprocessable("Cannot add destination with protocol: %s. Destination already exists for route: %s, app: %s, process: %s, and protocol: %s.",
		d.Protocol, uri(r, domain), d.AppGUID, d.ProcessType, have))
}

// replaceRoute gives a route other destinations. Those that stay as they are
// keep their GUIDs.
func (c *call) replaceRoute(r *cf.Route, wanted []cf.Destination) error {
	apps, err := c.complete(r, wanted)
	if err != nil {
		return err
	}
	var added []cf.Destination
	gone := slices.Clone(r.Destinations)
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
	r.Destinations = wanted
	return c.saveDestinations(r, func() error {
		if err := c.mapEvents(audit.AppUnmapRoute, r, gone, nil); err != nil {
			return err
		}
		return c.mapEvents(audit.AppMapRoute, r, added, apps)
	})
}

// saveDestinations writes a route whose destinations are others now; events
// tells of them.
func (c *call) saveDestinations(r *cf.Route, events func() error) error {
	if err := events(); err != nil {
		return err
	}
	c.warnOfPort(r)
	return store.Routes.Update(c.Tx, r)
}

// mapEvents tells of destinations to apps, which are looked up where they are
// not among those that are known; of an app that is gone nothing is told.
func (c *call) mapEvents(kind audit.Type, r *cf.Route, destinations []cf.Destination, known map[string]*cf.App) error {
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
		if err := c.AuditApp(kind, app, doc{"route_guid": r.GUID}); err != nil {
			return err
		}
	}
	return nil
}

func listDestinations(c *call) (*response, error) {
	r, err := c.appRoute()
	if err != nil {
		return nil, err
	}
	q := c.Request.URL.Query()
	for filter, value := range map[string]func(cf.Destination) string{
		"guids":     func(d cf.Destination) string { return d.GUID },
		"app_guids": func(d cf.Destination) string { return d.AppGUID },
	} {
		if q.Has(filter) {
			wanted := splitList(q.Get(filter))
			r.Destinations = slices.DeleteFunc(r.Destinations, func(d cf.Destination) bool { return !slices.Contains(wanted, value(d)) })
		}
	}
	return ok(c.destinations(r))
}

func deleteDestination(c *call) (*response, error) {
	r, err := c.appRoute()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(r.Destinations, func(d cf.Destination) bool { return d.GUID == c.param("destination") })
	if i < 0 {
		return nil, cf.Unprocessable("Unable to unmap route from destination. Ensure the route has a destination with this guid.")
	}
	gone := r.Destinations[i]
	if gone.Weight > 0 {
		return nil, cf.Unprocessable("Weighted destinations cannot be deleted individually.")
	}
	r.Destinations = slices.Delete(r.Destinations, i, i+1)
	if err := c.mapEvents(audit.AppUnmapRoute, r, []cf.Destination{gone}, nil); err != nil {
		return nil, err
	}
	if err := store.Routes.Update(c.Tx, r); err != nil {
		return nil, err
	}
	return noContent()
}

func updateDestination(c *call) (*response, error) {
	var req struct {
		Protocol opt[string] `json:"protocol"`
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	r, err := c.appRoute()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(r.Destinations, func(d cf.Destination) bool { return d.GUID == c.param("destination") })
	if i < 0 {
		return nil, cf.Unprocessable("Unable to unmap route from destination. Ensure the route has a destination with this guid.")
	}
	d, err := store.Domains.Get(c.Tx, r.DomainGUID)
	if err != nil {
		return nil, err
	}
	switch protocol := req.Protocol; {
	case !protocol.Set:
	case !slices.Contains(destinationProtocols, protocol.V):
		return nil, cf.Unprocessable("Destination protocol must be 'http1', 'http2' or 'tcp'.")
	case d.TCP() && protocol.V != "tcp":
		return nil, cf.Unprocessable("Destination protocol must be 'tcp' if the parent route's protocol is 'tcp'")
	case !d.TCP() && protocol.V == "tcp":
		return nil, cf.Unprocessable("Destination protocol must be 'http1' or 'http2' if the parent route's protocol is 'http'")
	default:
		r.Destinations[i].Protocol = protocol.V
	}
	if err := store.Routes.Update(c.Tx, r); err != nil {
		return nil, err
	}
	return ok(viewDestinations(r)[i])
}
