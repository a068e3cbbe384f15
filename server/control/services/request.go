package services

import (
	"encoding/json"
	"net/url"
	"strings"

	"cupola/server/control/change"
	"cupola/store/cf"
)

// Tags are the tags of a request.
type Tags []string

// UnmarshalJSON says what is wrong in Cloud Controller's words.
func (t *Tags) UnmarshalJSON(b []byte) error {
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

// isObject reports whether what was given is a JSON object, if it is not null.
func isObject(v change.Field[json.RawMessage]) bool {
	return !v.Set || v.Null || strings.HasPrefix(strings.TrimSpace(string(v.V)), "{")
}

// objectOf is a JSON object that a request gives; nil of none and null.
func objectOf(v change.Field[json.RawMessage]) json.RawMessage {
	if !v.Set || v.Null {
		return nil
	}
	return v.V
}

// isURI reports whether a text is what Ruby's URI takes for an absolute one.
func isURI(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && (u.Host != "" || u.Path != "" || u.Opaque != "") && !strings.ContainsAny(s, " \t\r\n<>\"{}|\\^`")
}

// relationFaults are Cloud Controller's messages for a relationship to one
// thing that is missing, or has no guid.
func relationFaults(r *change.ToOne, name string) []string {
	words := strings.ReplaceAll(name, "_", " ")
	title := "Relationships " + strings.ToUpper(words[:1]) + words[1:]
	switch {
	case r == nil:
		return []string{title + " can't be blank", title + ` must be structured like this: "` + name + `: {"data": {"guid": "valid-guid"}}"`}
	case r.GUID() == "":
		return []string{title + " guid must be between 1 and 200 characters"}
	}
	return nil
}

// ParametersTaken refuses parameters of a binding where no broker would get them.
func ParametersTaken(i *cf.ServiceInstance, given bool) error {
	if i.Type == cf.UserProvided && given {
		return cf.Unprocessable("Binding parameters are not supported for user-provided service instances")
	}
	return nil
}
