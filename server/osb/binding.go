package osb

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// Binding names a service binding of an instance.
type Binding struct {
	Instance
	GUID string
}

func (b Binding) path() string {
	return b.Instance.path() + "/service_bindings/" + url.PathEscape(b.GUID)
}

// Bind asks for a new binding: of an app, of a route, or of neither (a key).
type Bind struct {
	Binding
	Context        Context
	AppGUID        string
	AppSpaceGUID   string
	AppAnnotations map[string]string
	Route          string          // host and path
	Parameters     json.RawMessage // an object; none when empty
	Predecessor    string          // GUID of the binding that this one takes over from
	Requires       []string        // of the offering
}

// Bound is what a broker says of a binding.
type Bound struct {
	Async           bool
	Operation       string
	Credentials     json.RawMessage // an object; nil for none
	SyslogDrainURL  string
	RouteServiceURL string
	VolumeMounts    json.RawMessage // an array; nil for none
}

// Bind asks the broker to make a binding. Asking again for the same one is
// harmless.
func (c *Client) Bind(ctx context.Context, b Broker, r Bind) (Bound, error) {
	body := map[string]any{"service_id": r.OfferingID, "plan_id": r.PlanID, "bind_resource": r.resource(), "context": r.Context.body(false)}
	if r.AppGUID != "" {
		body["app_guid"] = r.AppGUID
	}
	if r.Predecessor != "" {
		body["predecessor_binding_id"] = r.Predecessor
	}
	addRest(body, r.Parameters, "")
	a, err := c.do(ctx, b, request{method: http.MethodPut, path: r.path(), query: async, body: body, user: r.User})
	if err != nil {
		return Bound{}, err
	}
	switch a.status {
	case 200, 201:
		err := a.mustBind(r.Requires)
		return a.bound(), err
	case http.StatusAccepted:
		err := a.mustFit(asyncAnswer, true)
		return Bound{Async: true, Operation: text(a.object["operation"])}, err
	case http.StatusConflict:
		return Bound{}, a.described(Conflict, "Resource conflict")
	case http.StatusUnprocessableEntity:
		return Bound{}, a.unprocessable(a.bad(), "RequiresApp", AsyncRequired, Concurrency)
	}
	return Bound{}, a.other()
}

func (r Bind) resource() map[string]any {
	switch {
	case r.AppGUID != "":
		return map[string]any{"app_guid": r.AppGUID, "space_guid": r.AppSpaceGUID, "app_annotations": public(r.AppAnnotations)}
	case r.Route != "":
		return map[string]any{"route": r.Route}
	}
	return map[string]any{}
}

func (a *answer) bound() Bound {
	b := Bound{SyslogDrainURL: text(a.object["syslog_drain_url"]), RouteServiceURL: text(a.object["route_service_url"])}
	if c := a.object["credentials"]; kindOf(c) == "object" {
		b.Credentials = c
	}
	if v := a.object["volume_mounts"]; !absent(v) {
		b.VolumeMounts = v
	}
	return b
}

// Unbind asks the broker to delete a binding. One that is gone already is
// deleted.
func (c *Client) Unbind(ctx context.Context, b Broker, r Binding) (Deleted, error) {
	return c.delete(ctx, b, r.path(), r.Instance)
}

// FetchedBinding is what a broker knows about a binding.
type FetchedBinding struct {
	Bound
	Parameters json.RawMessage // an object; nil for none
}

// FetchBinding asks the broker for a binding. Only a broker whose offering says
// that bindings are retrievable has to know.
func (c *Client) FetchBinding(ctx context.Context, b Broker, r Binding, requires []string) (f FetchedBinding, err error) {
	a, err := c.do(ctx, b, request{method: http.MethodGet, path: r.path(), user: r.User})
	if err != nil {
		return f, err
	}
	if a.status != http.StatusOK {
		return f, a.other()
	}
	if err := a.mustFit(fetchedBinding, true); err != nil {
		return f, err
	}
	if err := a.mustBind(requires); err != nil {
		return f, err
	}
	return FetchedBinding{Bound: a.bound(), Parameters: a.object["parameters"]}, nil
}
