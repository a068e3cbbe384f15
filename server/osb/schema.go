package osb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cupola/runtime/pattern"
)

// maxSchema bounds a JSON schema of parameters; bytes.
const maxSchema = 65536

// schemaFaults checks the schemas of a plan.
func schemaFaults(schemas map[string]json.RawMessage) (f faults) {
	for _, s := range []struct {
		of    string
		verbs []string
	}{{"service_instance", []string{"create", "update"}}, {"service_binding", []string{"create"}}} {
		raw := schemas[s.of]
		if absent(raw) || !f.wantObject("Schemas "+s.of, raw) {
			continue
		}
		for _, verb := range s.verbs {
			f.wantSchema(s.of+"."+verb, members(raw)[verb])
		}
	}
	return f
}

// wantSchema wants the parameters of one verb to be a schema.
func (f *faults) wantSchema(path string, verb json.RawMessage) {
	if absent(verb) || !f.wantObject("Schemas "+path, verb) {
		return
	}
	raw := members(verb)["parameters"]
	path += ".parameters"
	if absent(raw) || !f.wantObject("Schemas "+path, raw) {
		return
	}
	for _, fault := range schemaFault(raw) {
		f.add("Schema %s is not valid. %s", path, fault)
	}
}

var metaSchema = pattern.Lazy(`^https?://json-schema\.org/(draft-0[1-7]/|draft/2019-09/|draft/2020-12/)?schema#?$`)

// schemaFault checks one schema as far as Cloud Controller does before it looks
// at values: its size, its draft, what its keywords hold, and that it refers to
// nothing outside.
func schemaFault(raw json.RawMessage) []string {
	var compact bytes.Buffer
	if json.Compact(&compact, raw) == nil && compact.Len() > maxSchema {
		return []string{"Must not be larger than 64KB"}
	}
	draft := members(raw)["$schema"]
	if absent(draft) {
		return []string{"Schema must have $schema key but was not present"}
	}
	var found []string
	for _, fault := range keywordFaults("#", raw) {
		found = append(found, "Must conform to JSON Schema Draft 04 (experimental support for later versions): "+fault)
	}
	if found != nil {
		return found
	}
	if !metaSchema().MatchString(text(draft)) {
		return []string{"Custom meta schemas are not supported."}
	}
	if ref := outside(raw); ref != "" {
		return []string{"No external references are allowed: Read of URI at " + ref + " refused"}
	}
	return nil
}

// keywords are the types that draft 4 wants of its keywords.
var keywords = map[string][]string{
	"$schema": {"string"}, "id": {"string"}, "title": {"string"}, "description": {"string"}, "pattern": {"string"}, "format": {"string"},
	"multipleOf": {"number"}, "maximum": {"number"}, "minimum": {"number"},
	"maxLength": {"integer"}, "minLength": {"integer"}, "maxItems": {"integer"}, "minItems": {"integer"}, "maxProperties": {"integer"}, "minProperties": {"integer"},
	"uniqueItems": {"boolean"}, "required": {"array"}, "enum": {"array"},
	"properties": {"object"}, "patternProperties": {"object"}, "definitions": {"object"}, "dependencies": {"object"},
	"type": {"string", "array"}, "items": {"object", "array", "boolean"}, "additionalItems": {"boolean", "object"}, "additionalProperties": {"boolean", "object"},
	"allOf": {"array"}, "anyOf": {"array"}, "oneOf": {"array"}, "not": {"object"},
}

// keywordFaults checks the keywords of a schema and of the schemas in it.
func keywordFaults(at string, schema json.RawMessage) (found []string) {
	m := members(schema)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		want, ok := keywords[name]
		if !ok {
			continue
		}
		kind := kindOf(m[name])
		if !slices.Contains(want, kind) && (kind != "integer" || !slices.Contains(want, "number")) {
			found = append(found, mismatch(at+"/"+name, kind, want))
			continue
		}
		switch name {
		case "properties", "patternProperties", "definitions":
			found = append(found, eachSchema(at+"/"+name, m[name])...)
		case "items", "additionalItems", "additionalProperties", "not":
			found = append(found, keywordFaults(at+"/"+name, m[name])...)
		case "allOf", "anyOf", "oneOf":
			for i, s := range elements(m[name]) {
				found = append(found, keywordFaults(fmt.Sprintf("%s/%s/%d", at, name, i), s)...)
			}
		}
	}
	return found
}

func eachSchema(at string, object json.RawMessage) (found []string) {
	m := members(object)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if kind := kindOf(m[name]); kind != "object" {
			found = append(found, mismatch(at+"/"+name, kind, []string{"object"}))
			continue
		}
		found = append(found, keywordFaults(at+"/"+name, m[name])...)
	}
	return found
}

func mismatch(at, kind string, want []string) string {
	if len(want) == 1 {
		return fmt.Sprintf("The property '%s' of type %s did not match the following type: %s", at, kind, want[0])
	}
	return fmt.Sprintf("The property '%s' of type %s did not match one or more of the following types: %s", at, kind, strings.Join(want, ", "))
}

// outside is a reference that leads out of the schema; "" for none.
func outside(raw json.RawMessage) string {
	switch kindOf(raw) {
	case "array":
		for _, e := range elements(raw) {
			if ref := outside(e); ref != "" {
				return ref
			}
		}
	case "object":
		m := members(raw)
		if ref := text(m["$ref"]); ref != "" && !strings.HasPrefix(ref, "#") {
			return ref
		}
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if ref := outside(m[name]); ref != "" {
				return ref
			}
		}
	}
	return ""
}
