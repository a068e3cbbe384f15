package api

import (
	"slices"

	"cupola/server/control/message"
	"cupola/store/cf"
)

// Values of order_by.
var (
	byTime        = []string{"created_at", "updated_at"}
	byTimeAndName = []string{"created_at", "updated_at", "name"}
)

const (
	badParameter = cf.BadQueryParameter   // what most lists answer with
	unprocessed  = cf.UnprocessableEntity // and some others
)

func keys(names ...string) []string { return names }

var (
	nestedApp = notNested("app_guids", "organization_guids", "space_guids")

	appsList = listParams(badParameter, []string{"created_at", "updated_at", "name", "state"},
		keys("names", "organization_guids", "space_guids", "stacks", "include", "lifecycle_type"), true,
		includes("space", "org", "space.organization"), message.Given("lifecycle_type", func(r *message.Request) {
			if v := message.Text(r.Get("lifecycle_type")); !slices.Contains(lifecycleTypes, v) {
				r.Base("Invalid lifecycle_type: '" + v + "'")
			}
		}))
	processKeys = keys("app_guid", "types", "space_guids", "organization_guids", "app_guids", "embed")
	embedsCheck = resources("embed", "embedded", "process_instances")
	packageKeys = keys("states", "types", "app_guids", "app_guid", "space_guids", "organization_guids")
	dropletKeys = keys("app_guid", "app_guids", "current", "organization_guids", "package_guid", "space_guids", "states")
	taskKeys    = keys("names", "states", "app_guids", "organization_guids", "space_guids", "app_guid", "sequence_ids")
	domainsList = listParams(badParameter, byTime, keys("names", "guids", "organization_guids"), true)
	routeKeys   = keys("hosts", "space_guids", "organization_guids", "domain_guids", "paths", "app_guids", "include", "label_selector", "ports", "service_instance_guids")
	routesOf    = includes("domain", "space", "space.organization", "route_policies")
	orgsList    = listParams(badParameter, byTimeAndName, keys("names", "isolation_segment_guid"), true)
	userKeys    = keys("usernames", "partial_usernames", "origins")
	policiesOf  = includes("source", "route")
	groupsOf    = listParams(unprocessed, byTime, keys("names"), false)
	usageOne    = message.Optional("after_guid", message.Is("filter accepts only one guid", func(v any) bool { return message.Size(v) == 1 }))
	instanceOne = message.In("must be one of 'managed', 'user-provided'", "managed", "user-provided")
)

func userFilters(r *message.Request) {
	names, partial := r.Get("usernames") != nil, r.Get("partial_usernames") != nil
	if r.Get("origins") != nil && !names && !partial {
		r.Add("origins", "filter cannot be provided without usernames or partial_usernames filter.")
	}
	if names && partial {
		r.Add("usernames", "filter cannot be provided with both usernames and partial_usernames filter.")
	}
}

func policySources(r *message.Request) {
	list, _ := r.Get("sources").([]any)
	var invalid string
	for _, v := range list {
		if s, _ := v.(string); !cf.IsSource(s) {
			if invalid != "" {
				invalid += ", "
			}
			invalid += s
		}
	}
	if invalid != "" {
		r.Add("sources", "contains invalid source format: "+invalid)
	}
}

// unmappedOnly is CC: space_delete_unmapped_routes_message.rb.
func unmappedOnly(r *message.Request) {
	if !r.Has("unmapped") {
		r.Base("Mass delete not supported for routes. Use 'unmapped=true' parameter to delete all unmapped routes.")
	}
	switch r.Get("unmapped") {
	case "true":
	case "false":
		r.Base("Mass delete not supported for mapped routes. Use 'unmapped=true' parameter to delete all unmapped routes.")
	default:
		r.Add("unmapped", "must be a boolean")
	}
}

// targets is CC: Validators::TargetGuidsValidator.
func targets(r *message.Request) {
	if o, ok := r.Get("target_guids").(*message.Object); ok && message.Blank(o.Get("not")) {
		r.Add("target_guids", "target_guids has an invalid operator")
	}
}

// onlyTrue wants "current" to be true: one lists the current droplet or all.
var onlyTrue = message.Optional("current", message.In("only accepts the value 'true'", "true"))

// queryMessages are by the pattern of the route. Routes that are not here, which
// Cloud Controller does not have or does not check, go by their table.
var queryMessages = map[string]queryMessage{
	"GET /v3/apps":                           appsList,
	"GET /v3/apps/{guid}":                    showParams(badParameter, keys("include"), includes("space", "org", "space.organization")),
	"GET /v3/stacks/{guid}/apps":             appsList,
	"GET /v3/apps/{guid}/builds":             listParams(badParameter, byTime, keys("states"), true),
	"GET /v3/apps/{guid}/droplets":           listParams(badParameter, byTime, dropletKeys, true, onlyTrue, nestedApp),
	"GET /v3/apps/{guid}/packages":           listParams(badParameter, byTime, packageKeys, true, nestedApp),
	"GET /v3/apps/{guid}/processes":          listParams(badParameter, byTime, processKeys, true, embedsCheck, nestedApp),
	"GET /v3/apps/{guid}/tasks":              listParams(badParameter, byTime, taskKeys, true, notNested("space_guids", "organization_guids", "app_guids")),
	"GET /v3/apps/{guid}/revisions":          listParams(badParameter, byTime, keys("versions", "deployable"), true),
	"GET /v3/apps/{guid}/revisions/deployed": listParams(badParameter, byTime, nil, false),
	"GET /v3/apps/{guid}/routes":             listParams(badParameter, byTime, routeKeys, false, routesOf),
	"GET /v3/apps/{guid}/sidecars":           listParams(badParameter, byTime, nil, false),
	"GET /v3/processes/{guid}/sidecars":      listParams(badParameter, byTime, nil, false),
	"GET /v3/processes":                      listParams(badParameter, byTime, processKeys, true, embedsCheck),
	"GET /v3/processes/{guid}":               showParams(badParameter, keys("embed"), embedsCheck),
	"GET /v3/apps/{guid}/processes/{type}":   showParams(badParameter, keys("embed"), embedsCheck),
	"GET /v3/builds":                         listParams(badParameter, byTime, keys("app_guids", "package_guids", "states"), true),
	"GET /v3/packages":                       listParams(badParameter, byTime, packageKeys, true),
	"GET /v3/packages/{guid}/droplets":       listParams(badParameter, byTime, dropletKeys, true, notNested("current")),
	"GET /v3/droplets":                       listParams(badParameter, byTime, dropletKeys, true, notNested("current")),
	"GET /v3/tasks":                          listParams(badParameter, byTime, taskKeys, true, notNested("sequence_ids")),
	"GET /v3/deployments":                    listParams(badParameter, byTime, keys("app_guids", "states", "status_reasons", "status_values"), true),
	"GET /v3/app_usage_events":               listParams(unprocessed, byTime[:1], keys("after_guid"), false, refused("updated_ats"), usageOne),
	"GET /v3/service_usage_events": listParams(unprocessed, byTime[:1], keys("after_guid", "service_instance_types", "service_offering_guids"), false,
		refused("updated_ats"), usageOne),
	"GET /v3/audit_events": listParams(badParameter, byTime, keys("types", "target_guids", "space_guids", "organization_guids"), false, targets),
	"GET /v3/buildpacks": {kind: badParameter, known: buildpackParams, lists: listsOf(buildpackParams),
		checks: slices.Concat(listParams(badParameter, []string{"created_at", "updated_at", "position", "lifecycle"}, nil, true).checks[:5],
			checks{message.Optional("lifecycle", message.In(`must be either "buildpack" or "cnb"`, "buildpack", "cnb")), onlyParams(buildpackParams)})},
	"GET /v3/stacks":                                  listParams(badParameter, byTimeAndName, keys("names", "default"), true, message.Optional("default", booleanText)),
	"GET /v3/domains":                                 domainsList,
	"GET /v3/feature_flags":                           listParams(badParameter, []string{"name"}, nil, false, refused("created_ats")),
	"GET /v3/isolation_segments":                      listParams(badParameter, byTimeAndName, keys("names", "organization_guids"), true),
	"GET /v3/isolation_segments/{guid}/organizations": orgsList,
	"GET /v3/organizations":                           orgsList,
	"GET /v3/organizations/{guid}/domains":            domainsList,
	"GET /v3/organizations/{guid}/users":              listParams(badParameter, byTime, userKeys, true, userFilters),
	"GET /v3/organization_quotas":                     listParams(badParameter, byTime, keys("names", "organization_guids"), false),
	"GET /v3/space_quotas":                            listParams(unprocessed, byTime, keys("names", "organization_guids", "space_guids"), false),
	"GET /v3/spaces":                                  listParams(badParameter, byTimeAndName, keys("names", "organization_guids", "include"), true, includes("org", "organization")),
	"GET /v3/spaces/{guid}":                           showParams(badParameter, keys("include"), includes("org", "organization")),
	"GET /v3/spaces/{guid}/users":                     listParams(badParameter, byTime, userKeys, true, userFilters),
	"GET /v3/spaces/{guid}/running_security_groups":   groupsOf,
	"GET /v3/spaces/{guid}/staging_security_groups":   groupsOf,
	"DELETE /v3/spaces/{guid}/routes":                 {kind: unprocessed, known: keys("unmapped"), checks: checks{message.Keys("unmapped"), message.Attribute("unmapped", message.Present), unmappedOnly}},
	"GET /v3/security_groups": listParams(unprocessed, byTime, keys("names", "running_space_guids", "staging_space_guids", "globally_enabled_running", "globally_enabled_staging"), false,
		message.Optional("globally_enabled_running", booleanText), message.Optional("globally_enabled_staging", booleanText)),
	"GET /v3/roles": listParams(unprocessed, byTime, keys("organization_guids", "space_guids", "user_guids", "types", "include"), false,
		includes("user", "organization", "space")),
	"GET /v3/roles/{guid}":  showParams(unprocessed, keys("include"), includes("user", "organization", "space")),
	"GET /v3/users":         listParams(unprocessed, byTime, userKeys, true, userFilters),
	"GET /v3/routes":        listParams(badParameter, byTime, routeKeys, false, routesOf),
	"GET /v3/routes/{guid}": showParams(unprocessed, keys("guid", "include"), routesOf),
	"GET /v3/route_policies": listParams(badParameter, byTime, keys("guids", "route_guids", "space_guids", "sources", "source_guids", "include"), true,
		policiesOf, policySources),
	"GET /v3/route_policies/{guid}":      showParams(unprocessed, keys("include"), policiesOf),
	"GET /v3/routes/{guid}/destinations": showParams(unprocessed, keys("guids", "app_guids")),
	"GET /v3/service_brokers":            listParams(badParameter, byTimeAndName, keys("space_guids", "names"), true),
	"GET /v3/service_credential_bindings": listParams(badParameter, byTimeAndName, keys("names", "service_instance_guids", "service_instance_names", "service_plan_names",
		"service_plan_guids", "service_offering_names", "service_offering_guids", "app_guids", "app_names", "include", "type"), true,
		message.Optional("type", message.In("must be one of 'app', 'key'", "app", "key")), includes("app", "service_instance")),
	"GET /v3/service_credential_bindings/{guid}": showParams(badParameter, keys("include"), includes("app", "service_instance")),
	"GET /v3/service_route_bindings": listParams(badParameter, byTime, keys("service_instance_guids", "service_instance_names", "route_guids", "include"), true,
		includes("route", "service_instance")),
	"GET /v3/service_instances": listParams(badParameter, byTimeAndName,
		keys("type", "fields", "names", "space_guids", "organization_guids", "service_plan_guids", "service_plan_names"), true,
		message.Optional("type", instanceOne), fields(listedFields)),
	"GET /v3/service_instances/{guid}":                             showParams(badParameter, keys("fields"), fields(shownFields)),
	"GET /v3/service_instances/{guid}/relationships/shared_spaces": showParams(badParameter, keys("fields"), fields(sharedFields)),
	"GET /v3/service_offerings": listParams(badParameter, byTimeAndName, keys("available", "fields", "broker_catalog_ids", "service_broker_guids", "service_broker_names",
		"names", "space_guids", "organization_guids"), true, message.Optional("available", booleanText), fields(offeringFields)),
	"GET /v3/service_offerings/{guid}":    showParams(badParameter, keys("fields"), fields(offeringFields)),
	"DELETE /v3/service_offerings/{guid}": showParams(badParameter, keys("purge"), message.Optional("purge", booleanText)),
	"GET /v3/service_plans": listParams(badParameter, byTimeAndName, keys("available", "fields", "broker_catalog_ids", "names", "organization_guids", "service_broker_guids",
		"service_broker_names", "service_instance_guids", "service_offering_guids", "service_offering_names", "space_guids", "include"), true,
		includes("space.organization", "service_offering"), message.Optional("available", booleanText), fields(planFields)),
	"GET /v3/service_plans/{guid}": showParams(badParameter, keys("fields", "include"), includes("space.organization", "service_offering"), fields(planFields)),
}

var buildpackParams = slices.Concat(pagination, keys("stacks", "names", "lifecycle", "page", "per_page", "label_selector"))
