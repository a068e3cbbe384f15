package api

import (
	"encoding/json"
	"net/url"
	"strings"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/desire"
	"cupola/store/cf"
)

// viewOperation is the last_operation of a service instance or a binding.
func viewOperation(o cf.LastOperation) doc {
	return doc{"type": o.Type, "state": o.State, "description": control.OrNil(o.Description), "created_at": stamp(o.CreatedAt), "updated_at": stamp(o.UpdatedAt)}
}

// auditedRequest is the body of a request as audit events show it.
func auditedRequest(body []byte) doc {
	var d doc
	if json.Unmarshal(body, &d) != nil {
		return doc{}
	}
	for _, name := range []string{"credentials", "parameters"} {
		if _, ok := d[name]; ok {
			d[name] = audit.Hidden
		}
	}
	for _, name := range []string{"syslog_drain_url", "route_service_url"} {
		if text, ok := d[name].(string); ok {
			d[name] = desire.Redact(text)
		}
	}
	return d
}

// decodeAudited is decode, and gives the request as audit events show it.
func decodeAudited(c *call, v any) (doc, error) {
	body, err := readBody(c.Request, maxBody)
	if err != nil {
		return nil, err
	}
	return auditedRequest(body), decodeBody(body, v)
}

// tagList is the tags of a request.
type tagList []string

// UnmarshalJSON says what is wrong in Cloud Controller's words.
func (t *tagList) UnmarshalJSON(b []byte) error {
	var list []any
	if json.Unmarshal(b, &list) != nil {
		return cf.Unprocessable("Tags must be an array")
	}
	*t = nil
	for _, v := range list {
		s, ok := v.(string)
		if !ok {
			return cf.Unprocessable("Tags must be a list of strings")
		}
		*t = append(*t, s)
	}
	return nil
}

// isObject tells whether what was given is a JSON object, if it is not null.
func isObject(v change.Field[json.RawMessage]) bool {
	return !v.Set || v.Null || strings.HasPrefix(strings.TrimSpace(string(v.V)), "{")
}

// isURI tells whether a text is what Ruby's URI takes for an absolute one.
func isURI(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && (u.Host != "" || u.Path != "" || u.Opaque != "") && !strings.ContainsAny(s, " \t\r\n<>\"{}|\\^`")
}

// relationFaults are Cloud Controller's messages for a relationship to one
// thing that is missing, or has no guid.
func relationFaults(r *ref, name string) []string {
	title := sentence(name)
	switch {
	case r == nil:
		return []string{"Relationships " + title + " can't be blank", "Relationships " + title + ` must be structured like this: "` + name + `: {"data": {"guid": "valid-guid"}}"`}
	case r.guid() == "":
		return []string{"Relationships " + title + " guid must be between 1 and 200 characters"}
	}
	return nil
}
