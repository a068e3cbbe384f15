package api

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"cupola/server/control/message"
	"cupola/server/control/services"
)

// toOneOf is a relationship that must be there.
func toOneOf(key string) check { return message.Attribute(key, message.Present, message.ToOne) }

// fine reports whether nothing was found wrong so far: Cloud Controller looks at the
// rest of a request only where what all kinds have in common is right.
func fine(r *message.Request) bool { return !r.Wrong() }

// isType makes a condition of the type of a request.
func isType(name string) func(*message.Request) bool {
	return func(r *message.Request) bool { return fine(r) && r.Get("type") == name }
}

func tagStrings(r *message.Request) {
	list, _ := r.Get("tags").([]any)
	if slices.ContainsFunc(list, func(v any) bool { _, ok := v.(string); return !ok }) {
		r.Add("tags", "must be a list of strings")
	}
}

func routeServiceHTTPS(r *message.Request) {
	if s, _ := r.Get("route_service_url").(string); !message.Blank(s) && !strings.HasPrefix(s, "https:") {
		r.Add("route_service_url", "must be https")
	}
}

// instanceOf makes the checks of one kind of service instance, which are alike but
// for what they know.
func instanceOf(kind string, keys []string, relationships []string, more ...check) check {
	all := []check{message.Keys(append([]string{"type", "relationships", "name", "tags", "metadata"}, keys...)...)}
	inner := checks{message.Keys(append([]string{"space"}, relationships...)...)}
	for _, r := range relationships {
		inner = append(inner, toOneOf(r))
	}
	return func(r *message.Request) {
		if !isType(kind)(r) {
			return
		}
		message.Relationships(inner...)(r)
		for _, c := range append(all, more...) {
			c(r)
		}
	}
}

var userProvidedFields = []check{
	message.Filled("credentials", message.Hash),
	message.Filled("syslog_drain_url", message.URI),
	message.Filled("route_service_url", message.URI),
}

var serviceInstanceCreate = append(checks{
	message.Metadata,
	message.Relationships(message.Attribute("space", message.Present, message.ToOne)),
	message.Attribute("type", message.In("must be one of 'managed', 'user-provided'", "managed", "user-provided")),
	message.Attribute("name", message.String, message.Present),
	message.Filled("tags", message.Array),
	tagStrings,
},
	instanceOf("managed", []string{"parameters"}, []string{"service_plan"}, message.Optional("parameters", message.Hash)),
	instanceOf("user-provided", []string{"credentials", "syslog_drain_url", "route_service_url"}, nil, append(slices.Clone(userProvidedFields), routeServiceHTTPS)...))

var managedChange = checks{
	message.Metadata,
	message.Keys("name", "tags", "parameters", "relationships", "maintenance_info", "metadata"),
	message.Given("relationships", message.Relationships(message.Keys("service_plan"), toOneOf("service_plan"))),
	message.Optional("name", message.String),
	message.Filled("tags", message.Array),
	tagStrings,
	message.Optional("parameters", message.Hash),
	message.Optional("relationships", message.Hash),
	message.Optional("maintenance_info", message.Hash),
	message.Nested("maintenance_info", checks{message.Keys("version"), message.Optional("version", message.String,
		message.Is("must be a Semantic Version string", func(v any) bool { return services.IsVersion(message.Text(v)) }))}),
}

var userProvidedChange = slices.Concat(checks{
	message.Metadata,
	message.Keys("name", "tags", "credentials", "syslog_drain_url", "route_service_url", "metadata"),
	message.Filled("name", message.String),
	message.Filled("tags", message.Array),
}, userProvidedFields, checks{tagStrings, routeServiceHTTPS})

var bindingCreate = checks{
	message.Metadata,
	message.Keys("type", "strategy", "name", "relationships", "parameters", "metadata"),
	message.Relationships(toOneOf("service_instance")),
	message.Optional("parameters", message.Hash),
	message.Attribute("type", message.In("must be 'app' or 'key'", "app", "key")),
	func(r *message.Request) {
		switch {
		case isType("app")(r):
			message.Relationships(message.Keys("service_instance", "app"), toOneOf("app"))(r)
			message.Optional("strategy", message.In("must be 'single' or 'multiple'", "single", "multiple"))(r)
		case isType("key")(r):
			message.Relationships(message.Keys("service_instance"))(r)
			message.Attribute("name", message.String, message.Present)(r)
		}
	},
}

func emptyName(r *message.Request) {
	if r.Get("name") == "" {
		r.Add("name", "must not be empty string")
	}
}

// brokerURL is CC: validators/url_validator.rb.
func brokerURL(r *message.Request) {
	text := message.Text(r.Get("url"))
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		r.Add("url", "'"+text+"' must be a valid url")
	case u.User != nil:
		r.Add("url", "must not contain authentication")
	}
}

// authentication is CC: validators/authentication_validator.rb. What is wrong with
// its parts is shown as a list.
func authentication(r *message.Request) {
	o, ok := r.Get("authentication").(*message.Object)
	if !ok {
		return
	}
	var base, kind, credentials []string
	if o.Get("type") != "basic" {
		kind = []string{`authentication.type must be one of ["basic"]`}
	}
	inner, isObject := o.Get("credentials").(*message.Object)
	if !isObject {
		credentials = []string{"must be an object"}
	}
	base = checks{message.Keys("type", "credentials")}.Faults(o)
	if base != nil || kind != nil || credentials != nil {
		for _, list := range [][]string{base, kind, credentials} {
			if list != nil {
				r.Add("authentication", strings.Join(list, ", "))
			}
		}
	}
	if isObject {
		basicCredentials(r, inner)
	}
}

func basicCredentials(r *message.Request, o *message.Object) {
	m := checks{message.Keys("username", "password"), message.Attribute("username", message.String, message.Present), message.Attribute("password", message.String, message.Present)}
	attributes, texts := m.Errors(o)
	if texts == nil {
		return
	}
	r.Add("authentication", fmt.Sprintf("Field(s) %s must be valid: %s", message.Inspect(attributes), message.Inspect(texts)))
}

var serviceMessages = map[string]checks{
	"POST /v3/service_instances":                                    serviceInstanceCreate,
	"POST /v3/service_instances/{guid}/relationships/shared_spaces": toManyMessage,
	"POST /v3/service_credential_bindings":                          bindingCreate,
	"PATCH /v3/service_credential_bindings/{guid}":                  labelsOnly,
	"POST /v3/service_route_bindings": {
		message.Metadata,
		message.Keys("relationships", "parameters", "metadata"),
		message.Relationships(message.Keys("service_instance", "route"), toOneOf("service_instance"), toOneOf("route")),
		message.Optional("parameters", message.Hash),
	},
	"PATCH /v3/service_route_bindings/{guid}": labelsOnly,
	"POST /v3/service_brokers": {
		message.Metadata,
		message.Attribute("name", message.String),
		emptyName,
		message.Attribute("url", message.String),
		brokerURL,
		message.Attribute("authentication", message.Hash),
		authentication,
		message.Given("relationships", message.Relationships(message.Keys("space"), toOneOf("space"))),
		message.Keys("name", "url", "authentication", "relationships", "metadata"),
	},
	"PATCH /v3/service_brokers/{guid}": {
		message.Metadata,
		message.Optional("name", message.String),
		emptyName,
		message.Optional("url", message.String),
		message.When(func(r *message.Request) bool { return given(r.Get("url")) }, brokerURL),
		message.Optional("authentication", message.Hash),
		authentication,
		message.Keys("name", "url", "authentication", "metadata"),
	},
	"PATCH /v3/service_offerings/{guid}": labelsOnly,
	"PATCH /v3/service_plans/{guid}":     labelsOnly,
}

// planVisibility is CC: service_plan_visibility_update_message.rb. What is wrong is a
// 400 there.
var planVisibility = checks{
	message.Keys("type", "organizations"),
	message.Attribute("type", message.In("must be one of 'public', 'admin', 'organization'", "public", "admin", "organization")),
	func(r *message.Request) {
		if r.Get("type") != "organization" {
			message.Attribute("organizations", message.Absent)(r)
			return
		}
		message.Attribute("organizations", message.Array, message.Present)(r)
		list, _ := r.Get("organizations").([]any)
		if slices.ContainsFunc(list, func(v any) bool { o, _ := v.(*message.Object); _, ok := o.Get("guid").(string); return !ok }) {
			r.Add("organizations", `organizations list must be structured like this: "organizations": [{"guid": "valid-guid"}]`)
		}
	},
}
