package osb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// maxDepth bounds how deep JSON may be nested: Ruby's parser takes as much.
const maxDepth = 100

// tooDeep reports whether JSON is nested deeper than maxDepth.
func tooDeep(body []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// text is the string that raw is; "" when it is none.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// plain is raw for people: a string without its quotes, else the JSON.
func plain(raw json.RawMessage) string {
	if kindOf(raw) == "string" {
		return text(raw)
	}
	return string(raw)
}

// absent reports whether raw is not there or null.
func absent(raw json.RawMessage) bool { return kindOf(raw) == "null" }

// kindOf is the JSON type of raw as JSON Schema has it; "null" when there is
// none.
func kindOf(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "null"
	}
	switch raw[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	if bytes.ContainsAny(raw, ".eE") {
		return "number"
	}
	return "integer"
}

// members are the values of an object; nil when raw is none.
func members(raw json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if kindOf(raw) != "object" || json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// elements are the values of an array; nil when raw is none.
func elements(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if kindOf(raw) != "array" || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

// maxInspected bounds the shown part of a value, in bytes.
const maxInspected = 4096

// inspect writes a value as Ruby's inspect does, which is how Cloud Controller
// shows what a catalog has in the wrong place.
func inspect(raw json.RawMessage) string {
	if len(raw) > maxInspected {
		return strings.ToValidUTF8(string(raw[:maxInspected]), "") + "..."
	}
	switch kindOf(raw) {
	case "null":
		return "nil"
	case "string":
		return quote(text(raw))
	case "array":
		var list []string
		for _, e := range elements(raw) {
			list = append(list, inspect(e))
		}
		return "[" + strings.Join(list, ", ") + "]"
	case "object":
		var list []string
		for k, v := range members(raw) {
			list = append(list, quote(k)+"=>"+inspect(v))
		}
		slices.Sort(list)
		return "{" + strings.Join(list, ", ") + "}"
	}
	return string(bytes.TrimSpace(raw))
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(s) + `"`
}

// property is what an answer may have under a name.
type property struct {
	name       string
	types      []string
	max        int        // of a string's length; 0: any
	properties []property // of an object
}

// check lists what of an object is not as the properties want it, in the words
// of the library that Cloud Controller uses.
func check(path string, object map[string]json.RawMessage, properties []property) (faults []string) {
	for _, p := range properties {
		raw, ok := object[p.name]
		if !ok {
			continue
		}
		at := path + "/" + p.name
		kind := kindOf(raw)
		switch {
		case !slices.Contains(p.types, kind) && len(p.types) == 1:
			faults = append(faults, fmt.Sprintf("The property '#%s' of type %s did not match the following type: %s", at, kind, p.types[0]))
		case !slices.Contains(p.types, kind):
			faults = append(faults, fmt.Sprintf("The property '#%s' of type %s did not match one or more of the following types: %s", at, kind, strings.Join(p.types, ", ")))
		case p.max > 0 && len([]rune(text(raw))) > p.max:
			faults = append(faults, fmt.Sprintf("The property '#%s' was not of a maximum string length of %d", at, p.max))
		case p.properties != nil:
			faults = append(faults, check(at, members(raw), p.properties)...)
		}
	}
	return faults
}
