package databroker

import (
	"net/http"

	"cupola/server/osb/builtin"
)

// What all of the daemon's brokers have.
type (
	object  = builtin.Object
	answer  = builtin.Answer
	refusal = builtin.Refusal
)

// The specification's names of errors that platforms act on.
const (
	asyncRequired = "AsyncRequired"
	concurrency   = "ConcurrencyError"
	requiresApp   = "RequiresApp"
	otherVersion  = "MaintenanceInfoConflict"
)

func gone() answer { return answer{Status: http.StatusGone, Body: object{}} }

var (
	errAsync = &refusal{Status: http.StatusUnprocessableEntity, Code: asyncRequired, Text: "This request requires client support for asynchronous service operations."}
	errNoApp = &refusal{Status: http.StatusUnprocessableEntity, Code: requiresApp, Text: "This service supports generation of credentials through binding an application only."}
	errBusy  = &refusal{Status: http.StatusUnprocessableEntity, Code: concurrency, Text: "Another operation for this service instance is in progress."}
)

// handler answers the platform, which builtin.Guard let in.
func (b *broker) handler() http.Handler {
	const instance, binding = "/v2/service_instances/{instance}", "/v2/service_instances/{instance}/service_bindings/{binding}"
	return builtin.Routes{
		"GET /v2/catalog":                     func(*http.Request) (answer, error) { return b.catalog(), nil },
		"PUT " + instance:                     b.provision,
		"PATCH " + instance:                   b.update,
		"GET " + instance:                     b.fetch,
		"DELETE " + instance:                  b.deprovision,
		"GET " + instance + "/last_operation": b.lastOperation,
		"PUT " + binding:                      b.bind,
		"GET " + binding:                      b.fetchBinding,
		"DELETE " + binding:                   b.unbind,
		"GET " + binding + "/last_operation":  b.lastBindingOperation,
	}.Handler(b.Log)
}

// request is the body of a request to make or change something.
type request struct {
	ServiceID   string         `json:"service_id"`
	PlanID      string         `json:"plan_id"`
	OrgGUID     string         `json:"organization_guid,omitempty"`
	SpaceGUID   string         `json:"space_guid,omitempty"`
	Parameters  map[string]any `json:"parameters,omitempty"`
	AppGUID     string         `json:"app_guid,omitempty"` // older than bind_resource
	Maintenance *struct {
		Version string `json:"version"`
	} `json:"maintenance_info,omitempty"`
	BindResource *struct {
		AppGUID string `json:"app_guid"`
		Route   string `json:"route"`
	} `json:"bind_resource,omitempty"`
}

func decode(r *http.Request) (q request, err error) {
	err = builtin.Decode(r, &q)
	return q, err
}

func acceptsAsync(r *http.Request) error {
	if r.URL.Query().Get("accepts_incomplete") != "true" {
		return errAsync
	}
	return nil
}
