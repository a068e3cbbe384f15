package osb

import (
	"encoding/json"
	"strings"
)

// The checks below are Cloud Controller's, with its messages.

func (f *faults) wantText(what string, raw json.RawMessage, required bool) {
	switch {
	case !absent(raw) && kindOf(raw) != "string":
		f.add("%s must be a string, but has value %s", what, inspect(raw))
	case required && strings.TrimSpace(text(raw)) == "":
		f.add("%s is required", what)
	}
}

func (f *faults) wantDescription(what string, raw json.RawMessage) {
	f.wantText(what, raw, true)
	if len([]rune(text(raw))) > 10000 {
		f.add("%s may not have more than 10000 characters", what)
	}
}

func (f *faults) wantBool(what string, raw json.RawMessage, required bool) {
	switch {
	case !absent(raw) && kindOf(raw) != "boolean":
		f.add("%s must be a boolean, but has value %s", what, inspect(raw))
	case required && absent(raw):
		f.add("%s is required", what)
	}
}

func (f *faults) wantObject(what string, raw json.RawMessage) bool {
	if kindOf(raw) == "object" {
		return true
	}
	f.add("%s must be a hash, but has value %s", what, inspect(raw))
	return false
}

// wantList wants an array whose elements are all of a kind.
func (f *faults) wantList(what, plural, kind string, raw json.RawMessage) bool {
	right := kindOf(raw) == "array"
	for _, e := range elements(raw) {
		right = right && kindOf(e) == kind
	}
	if !right {
		f.add("%s must be an array of %s, but has value %s", what, plural, inspect(raw))
	}
	return right
}

func (f *faults) wantTags(service string, fields map[string]json.RawMessage) {
	raw, ok := fields["tags"]
	if !ok || !f.wantList("Service tags", "strings", "string", raw) {
		return
	}
	if len([]rune(strings.Join(texts(raw), ""))) > 2048 {
		f.add("Tags for the service %s must be 2048 characters or less.", service)
	}
}
