package osb

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// Instance names a service instance, in the broker's words but for its GUID.
type Instance struct {
	GUID       string
	OfferingID string
	PlanID     string
	User       string // GUID of the user who caused the request, or ""
}

func (i Instance) path() string { return "/v2/service_instances/" + url.PathEscape(i.GUID) }

func (i Instance) query() url.Values {
	return url.Values{"service_id": {i.OfferingID}, "plan_id": {i.PlanID}}
}

var async = url.Values{"accepts_incomplete": {"true"}}

// Provision asks for a new instance.
type Provision struct {
	Instance
	Context            Context
	Parameters         json.RawMessage // an object; none when empty
	MaintenanceVersion string          // "" for none
}

// Provisioned is what a broker says of an instance that it makes or changes.
type Provisioned struct {
	Async        bool   // it is not done yet
	Operation    string // the broker's name of what it is doing
	DashboardURL string
	Dashboard    bool            // DashboardURL was given
	Metadata     json.RawMessage // nil for none
}

// Provision asks the broker to make an instance. Asking again for the same one
// is harmless.
func (c *Client) Provision(ctx context.Context, b Broker, p Provision) (Provisioned, error) {
	body := map[string]any{"service_id": p.OfferingID, "plan_id": p.PlanID, "organization_guid": p.Context.OrgGUID, "space_guid": p.Context.SpaceGUID,
		"context": p.Context.body(true)}
	addRest(body, p.Parameters, p.MaintenanceVersion)
	a, err := c.do(ctx, b, request{method: http.MethodPut, path: p.path(), query: async, body: body, user: p.User})
	if err != nil {
		return Provisioned{}, err
	}
	switch a.status {
	case 200, 201, 202:
		return a.provisioned()
	case http.StatusUnprocessableEntity:
		return Provisioned{}, a.unprocessable(a.bad(), AsyncRequired, Concurrency, VersionConflict)
	case http.StatusConflict:
		return Provisioned{}, a.described(Conflict, "Resource conflict")
	}
	return Provisioned{}, a.other()
}

// addRest adds what a request has when it is there.
func addRest(body map[string]any, parameters json.RawMessage, version string) {
	if len(members(parameters)) > 0 {
		body["parameters"] = parameters
	}
	if version != "" {
		body["maintenance_info"] = map[string]string{"version": version}
	}
}

// other is the error of a status that the request does not know.
func (a *answer) other() error {
	if err := a.common(); err != nil {
		return err
	}
	return a.bad()
}

func (a *answer) provisioned() (p Provisioned, err error) {
	if err := a.mustFit(instanceAnswer, false); err != nil {
		return p, err
	}
	p.Async = a.status == http.StatusAccepted
	if p.Async {
		p.Operation = text(a.object["operation"])
	}
	p.DashboardURL, p.Dashboard = text(a.object["dashboard_url"]), !absent(a.object["dashboard_url"])
	if m := a.object["metadata"]; len(members(m)) > 0 {
		p.Metadata = m
	}
	return p, nil
}

// Change asks for an instance to be changed. The Instance's PlanID is the plan
// that it shall have.
type Change struct {
	Instance
	Context                 Context
	Parameters              json.RawMessage // an object; nil: none were given
	MaintenanceVersion      string          // that it shall have; "" for none
	PreviousPlanID          string
	PreviousMaintenanceInfo string // version; "" for none
}

// Update asks the broker to change an instance.
func (c *Client) Update(ctx context.Context, b Broker, u Change) (Provisioned, error) {
	previous := map[string]any{"plan_id": u.PreviousPlanID, "service_id": u.OfferingID, "organization_id": u.Context.OrgGUID, "space_id": u.Context.SpaceGUID}
	if u.PreviousMaintenanceInfo != "" {
		previous["maintenance_info"] = map[string]string{"version": u.PreviousMaintenanceInfo}
	}
	body := map[string]any{"service_id": u.OfferingID, "plan_id": u.PlanID, "previous_values": previous, "context": u.Context.body(false)}
	addRest(body, nil, u.MaintenanceVersion)
	if u.Parameters != nil {
		body["parameters"] = u.Parameters
	}
	a, err := c.do(ctx, b, request{method: http.MethodPatch, path: u.path(), query: async, body: body, user: u.User})
	if err != nil {
		return Provisioned{}, err
	}
	switch a.status {
	case 200, 202:
		return a.provisioned()
	case http.StatusCreated:
		return Provisioned{}, a.fault(BadResponse, "%s", a.badText())
	case http.StatusUnprocessableEntity:
		return Provisioned{}, a.unprocessable(a.described(Rejected, a.rejectedText()), AsyncRequired, VersionConflict)
	}
	return Provisioned{}, a.other()
}

// Deleted is what a broker says of what it deletes.
type Deleted struct {
	Async     bool
	Operation string
}

// Deprovision asks the broker to delete an instance. One that is gone already
// is deleted.
func (c *Client) Deprovision(ctx context.Context, b Broker, i Instance) (Deleted, error) {
	return c.delete(ctx, b, i.path(), i)
}

func (c *Client) delete(ctx context.Context, b Broker, path string, i Instance) (Deleted, error) {
	q := i.query()
	q.Set("accepts_incomplete", "true")
	a, err := c.do(ctx, b, request{method: http.MethodDelete, path: path, query: q, user: i.User})
	if err != nil {
		return Deleted{}, err
	}
	switch a.status {
	case http.StatusOK:
		return Deleted{}, a.mustBeObject(false)
	case http.StatusAccepted:
		err := a.mustFit(asyncAnswer, false)
		return Deleted{Async: true, Operation: text(a.object["operation"])}, err
	case http.StatusGone:
		return Deleted{}, nil
	case http.StatusCreated:
		return Deleted{}, a.fault(BadResponse, "%s", a.badText())
	case http.StatusUnprocessableEntity:
		return Deleted{}, a.unprocessable(a.bad(), AsyncRequired, Concurrency)
	}
	return Deleted{}, a.other()
}

// FetchedInstance is what a broker knows about an instance.
type FetchedInstance struct {
	DashboardURL string
	Dashboard    bool            // DashboardURL was given
	Parameters   json.RawMessage // an object; nil for none
}

// FetchInstance asks the broker for an instance. Only a broker whose offering
// says that instances are retrievable has to know.
func (c *Client) FetchInstance(ctx context.Context, b Broker, i Instance) (f FetchedInstance, err error) {
	a, err := c.do(ctx, b, request{method: http.MethodGet, path: i.path(), user: i.User})
	if err != nil {
		return f, err
	}
	if a.status != http.StatusOK {
		return f, a.other()
	}
	if err := a.mustFit(fetchedAnswer, false); err != nil {
		return f, err
	}
	d, given := a.object["dashboard_url"]
	return FetchedInstance{DashboardURL: text(d), Dashboard: given, Parameters: a.object["parameters"]}, nil
}
