package api

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/server/control/message"
	"cupola/server/control/routes"
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
			"weight": weight, "port": routes.PortOf(d), "protocol": d.Protocol})
	}
	return out
}

// A request to add destinations, and one to replace all: more is valid in the latter.
type (
	addDestinations struct {
		Destinations []any `json:"destinations"`
	}
	setDestinations struct {
		Destinations []any `json:"destinations"`
	}
)

func (r addDestinations) Validate() []string {
	_, faults := readDestinations(r.Destinations, false)
	return faults
}

func (r setDestinations) Validate() []string {
	_, faults := readDestinations(r.Destinations, true)
	return faults
}

func mapRoute(c *control.Session, r *cf.Route, req addDestinations) error {
	wanted, _ := readDestinations(req.Destinations, false)
	return routes.Map(c, r, wanted...)
}

func remapRoute(c *control.Session, r *cf.Route, req setDestinations) error {
	wanted, _ := readDestinations(req.Destinations, true)
	return routes.Replace(c, r, wanted)
}

// readDestinations gives the destinations of a request, and what is wrong with them in
// Cloud Controller's words.
func readDestinations(given []any, replace bool) (list []cf.Destination, faults []string) {
	least := 1
	if replace {
		least = 0
	}
	if given == nil || len(given) < least || len(given) > routes.MaxDestinations {
		return nil, []string{fmt.Sprintf("Destinations must be an array containing between %d and %d destination objects.", least, routes.MaxDestinations)}
	}
	for i, v := range given {
		f := &destinationFields{replace: replace}
		list = append(list, f.read(v))
		for _, text := range f.faults {
			faults = append(faults, fmt.Sprintf("Destinations[%d]: %s", i, text))
		}
	}
	if faults == nil {
		faults = weightFaults(list)
	}
	return list, faults
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
	f.optional(&d, m)
	return d
}

func (f *destinationFields) optional(d *cf.Destination, m map[string]any) {
	if m["weight"] != nil {
		f.weight(d, m["weight"])
	}
	if port := m["port"]; port != nil {
		n, whole := wholeNumber(port)
		f.check(whole && n >= 1024 && n <= 65535, "port must be a positive integer between 1024 and 65535 inclusive.")
		d.Port = n
	}
	if protocol := m["protocol"]; protocol != nil {
		d.Protocol, _ = protocol.(string)
		f.check(slices.Contains(routes.Protocols, d.Protocol), "protocol must be 'http1', 'http2' or 'tcp'.")
	}
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
	if text, ok := v.(json.Number); ok { // of a request that is checked
		n, whole := message.Whole(text)
		return int(n), whole && n > -1<<31 && n < 1<<31
	}
	n, ok := v.(float64)
	return int(n), ok && n == math.Trunc(n) && math.Abs(n) < 1<<31
}

func viewRouteDestinations(c *call, r *cf.Route) doc {
	return doc{"destinations": viewDestinations(r), "links": doc{
		"self": c.link("/v3/routes/%s/destinations", r.GUID), "route": c.link("/v3/routes/%s", r.GUID)}}
}

func listDestinations(c *call) (*response, error) {
	r, err := findRoute(c)
	if err != nil {
		return nil, err
	}
	if err := checkQuery(c); err != nil {
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
	return ok(viewRouteDestinations(c, r))
}

func updateDestination(c *call) (*response, error) {
	var req struct {
		Protocol change.Field[string] `json:"protocol"`
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	r, err := findRoute(c)
	if err != nil {
		return nil, err
	}
	i, err := routes.SetProtocol(c.Session, r, c.param("destination"), req.Protocol)
	if err != nil {
		return nil, err
	}
	return ok(viewDestinations(r)[i])
}
