package scalingbroker

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"cupola/server/control/autoscaling"
	"cupola/server/osb/builtin"
)

// request is the body of a request to make or change something.
type request struct {
	ServiceID    string          `json:"service_id"`
	PlanID       string          `json:"plan_id"`
	Parameters   json.RawMessage `json:"parameters,omitempty"`
	AppGUID      string          `json:"app_guid,omitempty"` // older than bind_resource
	BindResource *struct {
		AppGUID string `json:"app_guid"`
	} `json:"bind_resource,omitempty"`
}

func decode(r *http.Request) (q request, err error) {
	if err := builtin.Decode(r, &q); err != nil {
		return q, err
	}
	if q.ServiceID != serviceID || r.Method == http.MethodPut && q.PlanID != planID {
		return q, builtin.Refuse(http.StatusBadRequest, "the catalog has no such service or plan")
	}
	return q, nil
}

func (q request) app() string {
	if q.BindResource != nil && q.BindResource.AppGUID != "" {
		return q.BindResource.AppGUID
	}
	return q.AppGUID
}

// fields are the parameters' own.
func (q request) fields() (f map[string]json.RawMessage, err error) {
	if len(q.Parameters) == 0 {
		return nil, nil
	}
	if json.Unmarshal(q.Parameters, &f) != nil {
		return nil, builtin.Refuse(http.StatusBadRequest, "The format of the parameters is not valid JSON")
	}
	return f, nil
}

// instanceParameters are those of a service instance. given says that they name a default policy,
// which "" or "{}" removes.
func (q request) instanceParameters(now time.Time) (policy string, given bool, err error) {
	f, err := q.fields()
	if err != nil {
		return "", false, err
	}
	for name := range f {
		if name != "default_policy" {
			return "", false, builtin.Refuse(http.StatusBadRequest, "parameters has a field %s: only default_policy is known", name)
		}
	}
	text, given := f["default_policy"]
	policy, err = parse(text, now)
	return policy, given, err
}

// The types of credentials for custom metrics.
const (
	secretCredential      = "binding-secret"
	certificateCredential = "x509"
)

// bindingParameters are those of a binding. Other than with App Autoscaler, one without a policy may have a type of credentials alone.
func (q request) bindingParameters(now time.Time) (p autoscaling.Parameters, err error) {
	f, err := q.fields()
	if err != nil || len(f) == 0 {
		return p, err
	}
	if text, given := f["credential-type"]; given && len(f) == 1 {
		if json.Unmarshal(text, &p.Credential) != nil || p.Credential != secretCredential && p.Credential != certificateCredential {
			return p, invalid(autoscaling.Violations{{Context: "(root).credential-type", Description: `credential-type must be one of the following: "x509", "binding-secret"`}})
		}
		return p, nil
	}
	p, err = autoscaling.ParseParameters(q.Parameters, now)
	if wrong, ok := errors.AsType[autoscaling.Violations](err); ok {
		return p, invalid(wrong)
	}
	return p, err
}

// parse reads a policy; "" is none.
func parse(text []byte, now time.Time) (policy string, err error) {
	if t := bytes.TrimSpace(text); len(t) == 0 || bytes.Equal(t, []byte("{}")) || bytes.Equal(t, []byte("null")) {
		return "", nil
	}
	_, policy, err = autoscaling.Parse(text, now)
	if wrong, ok := errors.AsType[autoscaling.Violations](err); ok {
		return "", invalid(wrong)
	}
	return policy, err
}

// invalid refuses a policy, in App Autoscaler's words.
func invalid(wrong autoscaling.Violations) error {
	text, err := json.Marshal(wrong)
	if err != nil {
		return err
	}
	return &refusal{Status: http.StatusBadRequest, Code: "InvalidPolicy", Text: "invalid policy provided: " + string(text)}
}
