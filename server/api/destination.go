package api

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"cupola/runtime/contract"
	"cupola/server/control"
	"cupola/server/control/change"
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
			"weight": weight, "port": cmp.Or(d.Port, contract.DefaultPort), "protocol": d.Protocol})
	}
	return out
}

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
	if r.Destinations == nil || len(r.Destinations) < least || len(r.Destinations) > routes.MaxDestinations {
		return nil, cf.Unprocessable("Destinations must be an array containing between %d and %d destination objects.", least, routes.MaxDestinations)
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
		f.check(slices.Contains(routes.Protocols, d.Protocol), "protocol must be 'http1', 'http2' or 'tcp'.")
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
	r, err := routes.Find(c.Session, c.guid())
	if err != nil {
		return nil, err
	}
	if replace {
		err = routes.Replace(c.Session, r, wanted)
	} else {
		err = routes.Map(c.Session, r, wanted...)
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

func listDestinations(c *call) (*response, error) {
	r, err := routes.Find(c.Session, c.guid())
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
	r, err := routes.Find(c.Session, c.guid())
	if err != nil {
		return nil, err
	}
	if err := routes.Unmap(c.Session, r, c.param("destination")); err != nil {
		return nil, err
	}
	return noContent()
}

func updateDestination(c *call) (*response, error) {
	var req struct {
		Protocol change.Field[string] `json:"protocol"`
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	r, err := routes.Find(c.Session, c.guid())
	if err != nil {
		return nil, err
	}
	i, err := routes.SetProtocol(c.Session, r, c.param("destination"), req.Protocol)
	if err != nil {
		return nil, err
	}
	return ok(viewDestinations(r)[i])
}
