package osb

import (
	"context"
	"encoding/json"
	"net/http"
)

// Catalog is what a broker offers. Faults reports whether it may be used.
type Catalog struct {
	Services []Service
	raw      []rawService
}

// Service is a service of a catalog.
type Service struct {
	ID, Name, Description                     string
	Bindable, PlanUpdateable                  bool
	InstancesRetrievable, BindingsRetrievable bool
	AllowContextUpdates                       bool
	Tags, Requires                            []string
	Metadata                                  json.RawMessage // nil for none
	DashboardClient                           bool            // the offering has one; its content is not kept
	Plans                                     []Plan
}

// Plan is a plan of a service.
type Plan struct {
	ID, Name, Description    string
	Free                     bool
	Bindable, PlanUpdateable *bool // nil: as the service says
	BindingRotatable         bool
	MaximumPollingDuration   *int // seconds
	MaintenanceVersion       string
	MaintenanceDescription   string
	Metadata                 json.RawMessage // nil for none
	// JSON schemas of parameters; nil for none.
	CreateInstance, UpdateInstance, CreateBinding json.RawMessage
}

// rawService is a service as the broker wrote it.
type rawService struct {
	fields map[string]json.RawMessage
	plans  []map[string]json.RawMessage
}

// Catalog asks the broker what it offers.
func (c *Client) Catalog(ctx context.Context, b Broker, user string) (*Catalog, error) {
	a, err := c.do(ctx, b, request{method: http.MethodGet, path: "/v2/catalog", user: user})
	if err != nil {
		return nil, err
	}
	switch a.status {
	case http.StatusOK:
		return a.catalog()
	case 201, 202:
		if err := a.mustBeObject(false); err != nil {
			return nil, err
		}
	}
	return nil, a.other()
}

func (a *answer) catalog() (*Catalog, error) {
	if err := a.mustBeObject(false); err != nil {
		return nil, err
	}
	services, ok := a.object["services"]
	if ok && kindOf(services) != "array" {
		return nil, a.malformed("expected services to be an array")
	}
	c := &Catalog{}
	for _, raw := range elements(services) {
		fields := members(raw)
		if fields == nil {
			return nil, a.malformed("expected services to be an array of objects")
		}
		r := rawService{fields: fields}
		for _, p := range elements(fields["plans"]) {
			r.plans = append(r.plans, members(p))
		}
		c.raw = append(c.raw, r)
		c.Services = append(c.Services, r.service())
	}
	return c, nil
}

// service reads what Faults finds right; what it finds wrong is zero.
func (r rawService) service() Service {
	f := r.fields
	_, dashboard := f["dashboard_client"]
	s := Service{ID: text(f["id"]), Name: text(f["name"]), Description: text(f["description"]),
		Bindable: truth(f["bindable"]), PlanUpdateable: truth(f["plan_updateable"]),
		InstancesRetrievable: truth(f["instances_retrievable"]), BindingsRetrievable: truth(f["bindings_retrievable"]),
		AllowContextUpdates: truth(f["allow_context_updates"]), Tags: texts(f["tags"]), Requires: texts(f["requires"]),
		Metadata: orNil(f["metadata"]), DashboardClient: dashboard && !absent(f["dashboard_client"])}
	for _, p := range r.plans {
		s.Plans = append(s.Plans, plan(p))
	}
	return s
}

func plan(f map[string]json.RawMessage) Plan {
	info := members(f["maintenance_info"])
	schemas := members(f["schemas"])
	instance, binding := members(schemas["service_instance"]), members(schemas["service_binding"])
	p := Plan{ID: text(f["id"]), Name: text(f["name"]), Description: text(f["description"]),
		Free: absent(f["free"]) || truth(f["free"]), Bindable: truthOrNil(f["bindable"]), PlanUpdateable: truthOrNil(f["plan_updateable"]),
		BindingRotatable:   truth(f["binding_rotatable"]),
		MaintenanceVersion: text(info["version"]), MaintenanceDescription: text(info["description"]), Metadata: orNil(f["metadata"]),
		CreateInstance: orNil(members(instance["create"])["parameters"]), UpdateInstance: orNil(members(instance["update"])["parameters"]),
		CreateBinding: orNil(members(binding["create"])["parameters"])}
	var seconds int
	if raw := f["maximum_polling_duration"]; kindOf(raw) == "integer" && json.Unmarshal(raw, &seconds) == nil {
		p.MaximumPollingDuration = &seconds
	}
	return p
}

func truth(raw json.RawMessage) bool {
	var b bool
	return json.Unmarshal(raw, &b) == nil && b
}

func truthOrNil(raw json.RawMessage) *bool {
	if kindOf(raw) != "boolean" {
		return nil
	}
	b := truth(raw)
	return &b
}

func texts(raw json.RawMessage) []string {
	var list []string
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

// orNil is raw, or nil for null.
func orNil(raw json.RawMessage) json.RawMessage {
	if absent(raw) {
		return nil
	}
	return raw
}
