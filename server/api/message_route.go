package api

import (
	"slices"

	"cupola/server/control/message"
	"cupola/server/control/routes"
	"cupola/store/cf"
)

const (
	routeHost  = `^([A-Za-z0-9_-]+|\*)?$`
	routePath  = `^(/.*)?$`
	questions  = `\?`
	onlySlash  = `^/$`
	aDot       = `\.`
	labels63   = `^([^.]{0,63}\.)*[^.]{0,63}$`
	notInNames = `[^A-Za-z0-9.-]`
)

var routeCreate = checks{
	message.Metadata,
	message.Optional("host", message.String, message.Max(63),
		message.Like(routeHost, `must be either "*" or contain only alphanumeric characters, "_", or "-"`)),
	message.Optional("path", message.String, message.Max(128), message.Like(routePath, "must begin with /")),
	message.Optional("path", message.Unlike(questions, "cannot contain ?")),
	message.Optional("path", message.Unlike(onlySlash, "cannot be exactly /")),
	message.Optional("port", message.Integer(message.AtLeast(0), message.AtMost(65535))),
	message.Attribute("relationships", message.Present),
	message.Keys("host", "path", "port", "relationships", "options", "metadata"),
	message.Relationships(message.Keys("space", "domain"),
		message.Attribute("space", message.Present, message.ToOne), message.Attribute("domain", message.Present, message.ToOne)),
}

// domainExclusions are what a domain cannot be at once.
func domainExclusions(r *message.Request) {
	internal, enforce := r.Get("internal") == true, r.Get("enforce_route_policies") == true
	for _, x := range []struct {
		wrong bool
		text  string
	}{
		{internal && r.Has("relationships"), "Cannot associate an internal domain with an organization"},
		{internal && r.Has("router_group"), "Internal domains cannot be associated to a router group."},
		{internal && enforce, "Internal domains cannot have route policy enforcement. Internal routes bypass GoRouter."},
		{r.Has("router_group") && enforce, "Domains with a router group cannot have route policy enforcement. TCP routes do not support mTLS policy enforcement."},
		{r.Has("relationships") && r.Has("router_group"), "Domains scoped to an organization cannot be associated to a router group."},
	} {
		if x.wrong {
			r.Base(x.text)
		}
	}
}

func domainRouterGroup(r *message.Request) {
	v := r.Get("router_group")
	if v == nil {
		return
	}
	o, ok := v.(*message.Object)
	if !ok {
		r.Add("router_group", "must be an object")
		return
	}
	message.NestedAt("router_group", "router_group", checks{message.Keys("guid")})(r)
	if _, ok := o.Get("guid").(string); !ok {
		r.Add("router_group", "guid must be a string")
	}
}

func domainScope(r *message.Request) {
	scope, _ := r.Get("route_policies_scope").(string)
	if r.Get("route_policies_scope") != nil && !slices.Contains([]string{"any", "org", "space"}, scope) {
		r.Add("route_policies_scope", "must be one of 'any', 'org', 'space'")
	}
	if r.Get("enforce_route_policies") == true && message.Blank(r.Get("route_policies_scope")) {
		r.Add("route_policies_scope", "is required when enforce_route_policies is true")
	}
}

var domainCreate = checks{
	message.Metadata,
	message.Keys("name", "internal", "relationships", "router_group", "enforce_route_policies", "route_policies_scope", "metadata"),
	message.Given("relationships", message.Relationships(message.Keys("organization", "shared_organizations"),
		message.Optional("organization", message.ToOne), message.Optional("shared_organizations", message.ToMany),
		func(r *message.Request) {
			if r.Has("shared_organizations") && !r.Has("organization") {
				r.Base("cannot contain shared_organizations without an owning organization.")
			}
		})),
	message.Attribute("name", message.Present, message.String, message.Min(3), message.Max(253),
		message.Like(message.DomainName, "does not comply with RFC 1035 standards")),
	message.Attribute("name", message.Like(aDot, `must contain at least one "."`)),
	message.Attribute("name", message.Like(labels63, "subdomains must each be at most 63 characters")),
	message.Attribute("name", message.Unlike(notInNames, "must consist of alphanumeric characters and hyphens")),
	domainRouterGroup,
	domainExclusions,
	message.Optional("internal", message.Boolean),
	message.Optional("enforce_route_policies", message.Boolean),
	domainScope,
}

// destinations checks those of a request to add some, or to replace all.
func destinations(replace bool) check {
	return func(r *message.Request) {
		list, _ := message.Plain(r.Get("destinations")).([]any)
		_, faults := readDestinations(list, replace)
		for _, f := range faults {
			r.Base(f)
		}
	}
}

// domainShares is CC: domain_update_shared_orgs_message.rb.
func domainShares(r *message.Request) {
	list, ok := r.Get("data").([]any)
	if !ok || slices.ContainsFunc(list, func(v any) bool {
		o, _ := v.(*message.Object)
		guid, ok := o.Get("guid").(string)
		return !ok || guid == "" || message.Size(guid) > 200
	}) {
		r.Base(`Data must have the structure "data": [{"guid": shared_org_guid_1}, {"guid": shared_org_guid_2}]`)
	}
}

// moveData names the space that is to own a route: CC: route_transfer_owner_message.rb.
func moveData(r *message.Request) {
	message.Attribute("data", message.Present, message.Hash)(r)
	o, ok := r.Get("data").(*message.Object)
	if !ok {
		return
	}
	oneGUID(r, o)
	if o.Get("guid") == "" {
		r.Add("data", "guid can't be blank")
	}
}

var routeMessages = map[string]checks{
	"POST /v3/routes":                      routeCreate,
	"PATCH /v3/routes/{guid}":              {message.Metadata, message.Keys("options", "metadata")},
	"POST /v3/routes/{guid}/destinations":  {message.Keys("destinations"), destinations(false)},
	"PATCH /v3/routes/{guid}/destinations": {message.Keys("destinations"), destinations(true)},
	"PATCH /v3/routes/{guid}/destinations/{destination}": {
		message.Keys("protocol"),
		message.Given("protocol", func(r *message.Request) {
			if s, _ := r.Get("protocol").(string); !slices.Contains(routes.Protocols, s) {
				r.Add("destination", "protocol must be 'http1', 'http2' or 'tcp'.")
			}
		}),
	},
	"POST /v3/routes/{guid}/relationships/shared_spaces": toManyMessage,
	"PATCH /v3/routes/{guid}/relationships/space":        {message.Keys("data"), moveData},
	"POST /v3/domains":         domainCreate,
	"PATCH /v3/domains/{guid}": labelsOnly,
	"POST /v3/domains/{guid}/relationships/shared_organizations": {message.Metadata, message.Keys("data", "metadata"), domainShares},
	"POST /v3/route_policies": {
		message.Metadata,
		message.Keys("source", "relationships", "metadata"),
		message.Relationships(message.Keys("route"), message.Attribute("route", message.Present, message.ToOne)),
		message.Attribute("source", message.Present, message.String),
		func(r *message.Request) {
			if s, ok := r.Get("source").(string); ok && !cf.IsSource(s) {
				r.Add("source", "must be in format 'cf:app:<uuid>', 'cf:space:<uuid>', 'cf:org:<uuid>', or 'cf:any'")
			}
		},
	},
	"PATCH /v3/route_policies/{guid}": labelsOnly,
}
