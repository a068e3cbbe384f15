package osb

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// What Cloud Controller wants of answers, as JSON schemas have it.
var (
	object    = []string{"object"}
	operation = property{name: "operation", types: []string{"string"}, max: 10000}
	metadata  = property{name: "metadata", types: object, properties: []property{{name: "labels", types: object}, {name: "attributes", types: object}}}

	asyncAnswer    = []property{operation}
	instanceAnswer = []property{{name: "dashboard_url", types: []string{"string", "null"}}, operation, metadata}
	fetchedAnswer  = []property{{name: "service_id", types: []string{"string"}}, {name: "plan_id", types: []string{"string"}},
		{name: "dashboard_url", types: []string{"string"}}, {name: "parameters", types: object}, metadata}
	fetchedBinding = []property{{name: "parameters", types: object}, {name: "credentials", types: object}, {name: "syslog_drain_url", types: []string{"string"}},
		{name: "route_service_url", types: []string{"string"}}, {name: "volume_mounts", types: []string{"array"}}}
)

// hidden stands for what may hold credentials: an answer with a binding is
// never shown, be it as wrong as it may.
const hidden = "[PRIVATE DATA HIDDEN]"

// mustBeObject refuses a body that is not an object. secret hides what it is.
func (a *answer) mustBeObject(secret bool) error {
	if a.object != nil {
		return nil
	}
	body := string(a.body)
	if secret {
		body = hidden
	}
	return a.malformed("expected valid JSON object in body, broker returned '%s'", body)
}

// mustFit refuses an answer that is not of a shape.
func (a *answer) mustFit(shape []property, secret bool) error {
	if err := a.mustBeObject(secret); err != nil {
		return err
	}
	if faults := check("", a.object, shape); len(faults) > 0 {
		return a.malformed("\n%s", strings.Join(faults, "\n"))
	}
	return nil
}

// mustBind refuses a binding that Cloud Controller does. requires are the
// offering's.
func (a *answer) mustBind(requires []string) error {
	if err := a.mustBeObject(true); err != nil {
		return err
	}
	if c := a.object["credentials"]; !absent(c) && string(c) != "false" && kindOf(c) != "object" {
		return a.malformed("expected credentials to be a valid JSON object")
	}
	if !absent(a.object["syslog_drain_url"]) {
		if !slices.Contains(requires, "syslog_drain") {
			return a.fault(invalidDrain, "The service is attempting to stream logs from your application, but is not registered as a logging service. Please contact the service provider.")
		}
		if kindOf(a.object["syslog_drain_url"]) != "string" {
			return a.malformed("expected syslog_drain_url to be a string")
		}
	}
	if err := a.mustForward(requires); err != nil {
		return err
	}
	return a.mustMount(requires)
}

func (a *answer) mustForward(requires []string) error {
	raw := a.object["route_service_url"]
	if absent(raw) {
		return nil
	}
	u, err := url.Parse(text(raw))
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || strings.HasPrefix(u.Hostname(), ".") {
		return a.fault(BadResponse, "The service broker returned an invalid response. Status Code: %s, Body: %s", a.line(), hidden)
	}
	if !slices.Contains(requires, "route_forwarding") {
		return a.fault(BadResponse, "The service is attempting to forward requests of routes, but is not registered as a route service. Please contact the service provider.")
	}
	return nil
}

func (a *answer) mustMount(requires []string) error {
	raw := a.object["volume_mounts"]
	if absent(raw) {
		return nil
	}
	invalid := func(why string) error {
		return a.fault(invalidVolumes, "The service broker returned an invalid response: %s", why)
	}
	if !slices.Contains(requires, "volume_mount") {
		return invalid("The service is attempting to supply volume mounts from your application, but is not registered as a volume mount service. Please contact the service provider.")
	}
	mounts := elements(raw)
	for _, m := range mounts {
		if kindOf(m) != "object" {
			mounts = nil
		}
	}
	if mounts == nil && strings.TrimSpace(string(raw)) != "[]" {
		return invalid(`expected "volume_mounts" key to contain an array of JSON objects in body, broker returned '` + hidden + `'`)
	}
	for _, m := range mounts {
		if why := mountFault(members(m)); why != "" {
			return invalid(why)
		}
	}
	return nil
}

func mountFault(m map[string]json.RawMessage) string {
	for _, key := range []string{"device_type", "device", "mode", "container_dir", "driver"} {
		if raw, ok := m[key]; !ok || key != "device" && text(raw) == "" {
			return "missing required field '" + key + "'"
		}
	}
	device := m["device"]
	if kindOf(device) != "object" {
		return "required field 'device' must be an object but is " + rubyClass(device)
	}
	if text(members(device)["volume_id"]) == "" {
		return "required field 'device.volume_id' must be a non-empty string"
	}
	if c := members(device)["mount_config"]; !absent(c) && kindOf(c) != "object" {
		return "field 'device.mount_config' must be an object if it is defined"
	}
	return ""
}

func rubyClass(raw json.RawMessage) string {
	switch kindOf(raw) {
	case "string":
		return "String"
	case "array":
		return "Array"
	case "integer":
		return "Integer"
	case "number":
		return "Float"
	case "boolean":
		b := strings.TrimSpace(string(raw))
		return strings.ToUpper(b[:1]) + b[1:] + "Class"
	case "object":
		return "Hash"
	}
	return "NilClass"
}
