package databroker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"cupola/server/osb/builtin"
)

// object is one of JSON.
type object = map[string]any

// answer is what a request is answered.
type answer struct {
	status int
	body   object
}

// maxRequest bounds a request, in bytes.
const maxRequest = 1 << 20

// errorCode is the specification's name of an error that platforms act on.
type errorCode string

const (
	asyncRequired errorCode = "AsyncRequired"
	concurrency   errorCode = "ConcurrencyError"
	requiresApp   errorCode = "RequiresApp"
	otherVersion  errorCode = "MaintenanceInfoConflict"
)

// refusal is an error that the platform sees.
type refusal struct {
	status int
	code   errorCode // "" for none
	text   string
}

func (r *refusal) Error() string { return r.text }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, "", fmt.Sprintf(format, args...)}
}

func gone() answer { return answer{http.StatusGone, object{}} }

var (
	errAsync = &refusal{http.StatusUnprocessableEntity, asyncRequired, "This request requires client support for asynchronous service operations."}
	errNoApp = &refusal{http.StatusUnprocessableEntity, requiresApp, "This service supports generation of credentials through binding an application only."}
	errBusy  = &refusal{http.StatusUnprocessableEntity, concurrency, "Another operation for this service instance is in progress."}
)

// handler answers the platform, which builtin.Guard let in.
func (b *broker) handler() http.Handler {
	mux := http.NewServeMux()
	const instance, binding = "/v2/service_instances/{instance}", "/v2/service_instances/{instance}/service_bindings/{binding}"
	for pattern, do := range map[string]func(*http.Request) (answer, error){
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
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { b.reply(w, r, do) })
	}
	return mux
}

func (b *broker) reply(w http.ResponseWriter, r *http.Request, do func(*http.Request) (answer, error)) {
	a, err := do(r)
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		a = answer{refused.status, object{"description": refused.text}}
		if refused.code != "" {
			a.body["error"] = refused.code
		}
	case err != nil && r.Context().Err() == nil:
		b.Log.ErrorContext(r.Context(), "request of the platform was not done", "method", r.Method, "path", r.URL.Path, "err", err)
		a = answer{http.StatusInternalServerError, object{"description": err.Error()}}
	}
	builtin.Write(w, a.status, a.body)
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
	text, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		return q, err
	}
	if err := json.Unmarshal(text, &q); err != nil {
		return q, refuse(http.StatusBadRequest, "the request is no JSON object: %v", err)
	}
	return q, nil
}

// text is what two requests for the same have in common.
func (q request) text() string {
	text, err := json.Marshal(q)
	if err != nil {
		return "" // it was JSON
	}
	return string(text)
}

func acceptsAsync(r *http.Request) error {
	if r.URL.Query().Get("accepts_incomplete") != "true" {
		return errAsync
	}
	return nil
}
