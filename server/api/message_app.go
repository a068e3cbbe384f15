package api

import (
	"fmt"
	"slices"
	"strings"

	"cupola/server/control/message"
	"cupola/store/cf"
)

// aboveZero wants a whole number above zero.
var aboveZero = message.Integer(message.Above(0))

// lifecycleTypes are those that a request may name.
var lifecycleTypes = []string{"buildpack", "docker", "cnb"}

// lifecycleData is the data of a lifecycle with buildpacks: CC:
// buildpack_lifecycle_data_message.rb.
var lifecycleData = checks{
	message.Keys("buildpacks", "stack", "credentials"),
	message.Optional("stack", message.String, message.Between(1, 4096, "must be between 1 and 4096 characters")),
	message.Optional("buildpacks", message.Array),
	message.Optional("credentials", message.Hash),
	buildpackNames,
	func(r *message.Request) {
		o, _ := r.Get("credentials").(*message.Object)
		for _, v := range valuesOf(o) {
			if _, ok := v.(*message.Object); !ok {
				r.Add("credentials", "credentials value must be a hash")
				return
			}
		}
	},
}

func valuesOf(o *message.Object) (values []any) {
	if o == nil {
		return nil
	}
	for _, k := range o.Keys {
		values = append(values, o.Values[k])
	}
	return values
}

func buildpackNames(r *message.Request) {
	list, _ := r.Get("buildpacks").([]any)
	text, length := true, true
	for _, v := range list {
		s, ok := v.(string)
		text = text && ok
		length = length && (!ok || !message.Blank(s) && message.Size(s) <= 4096)
	}
	if !text {
		r.Add("buildpacks", "can only contain strings")
	}
	if !length {
		r.Add("buildpacks", "entries must be between 1 and 4096 characters")
	}
}

// lifecycleCheck is CC: Validators::LifecycleValidator.
func lifecycleCheck(r *message.Request) {
	kind := r.Get("lifecycle.type")
	if kind == nil || kind == false {
		kind = "buildpack"
	}
	name, _ := kind.(string)
	if !slices.Contains(lifecycleTypes, name) {
		r.Add("lifecycle_type", "is not included in the list: "+strings.Join(lifecycleTypes, ", "))
		return
	}
	data := lifecycleData
	if name == "docker" {
		data = checks{message.Keys()}
	}
	message.NestedAt("lifecycle.data", "lifecycle", data)(r)
}

// typed reports whether a request names the type of its lifecycle.
func typed(r *message.Request) bool { return !message.Blank(r.Get("lifecycle.type")) }

// What several messages check.
var (
	appRelationship = message.Relationships(message.Keys("app"), message.Attribute("app", message.Present, message.ToOne))
	lifecycleHash   = message.Given("lifecycle", message.At("lifecycle.data", "lifecycle_data", message.Hash))
	runUser         = message.Optional("user", message.String, message.Between(1, 255, "must be between 1 and 255 characters"))
	checkTypes      = message.In(`must be "port", "process", or "http"`, "port", "process", "http")
	seconds         = message.Integer(message.AtLeast(1), message.AtMost(maxDBInt))
)

var processUpdate = checks{
	message.Metadata,
	message.Keys("command", "user", "health_check", "readiness_health_check", "metadata"),
	message.Optional("command", message.String, message.Between(1, 4096, "must be between 1 and 4096 characters")),
	runUser,
	givenAt("health_check", "type", message.At("health_check.type", "health_check_type", checkTypes)),
	message.OptionalAt("health_check.data.timeout", "health_check_timeout", seconds),
	message.OptionalAt("health_check.data.invocation_timeout", "health_check_invocation_timeout", seconds),
	message.OptionalAt("health_check.data.interval", "health_check_interval", seconds),
	message.OptionalAt("health_check.data.endpoint", "health_check_endpoint", message.Max(255), message.URIPath),
	givenAt("readiness_health_check", "type", message.At("readiness_health_check.type", "readiness_health_check_type", checkTypes)),
	message.OptionalAt("readiness_health_check.data.invocation_timeout", "readiness_health_check_invocation_timeout", seconds),
	message.OptionalAt("readiness_health_check.data.interval", "readiness_health_check_interval", seconds),
	message.OptionalAt("readiness_health_check.data.endpoint", "readiness_health_check_endpoint", message.Max(255), message.URIPath),
}

// givenAt makes a check where an object of the request has a key.
func givenAt(object, key string, c check) check {
	return message.When(func(r *message.Request) bool {
		o, _ := r.Get(object).(*message.Object)
		return o.Has(key)
	}, c)
}

// scaleChecks are of how much a process is to have; instances is what they are
// called: CC: process_scale_message.rb.
func scaleChecks(at func(key, attribute string, rules ...message.Rule) check, instances string) checks {
	return checks{
		at(instances, instances, message.Integer(message.AtLeast(0), message.AtMost(maxDBInt))),
		at("memory_in_mb", "memory_in_mb", message.Integer(message.Above(0), message.AtMost(maxDBInt))),
		at("disk_in_mb", "disk_in_mb", message.Integer(message.Above(0), message.AtMost(maxDBInt))),
		at("log_rate_limit_in_bytes_per_second", "log_rate_limit_in_bytes_per_second", message.Integer(message.AtLeast(-1), message.AtMost(maxDBBigint))),
	}
}

var processScale = append(checks{message.Keys("instances", "memory_in_mb", "disk_in_mb", "log_rate_limit_in_bytes_per_second")},
	scaleChecks(message.OptionalAt, "instances")...)

var taskCreate = checks{
	message.Metadata,
	message.Keys("name", "command", "disk_in_mb", "memory_in_mb", "log_rate_limit_in_bytes_per_second", "droplet_guid", "template", "user", "metadata"),
	message.Optional("disk_in_mb", aboveZero),
	message.Optional("memory_in_mb", aboveZero),
	message.Optional("log_rate_limit_in_bytes_per_second", message.Integer(message.Above(-2), message.AtMost(maxDBBigint))),
	message.Optional("droplet_guid", message.GUID),
	message.Given("template", message.At("template.process.guid", "template_process_guid", message.GUID)),
	func(r *message.Request) {
		if no := func(v any) bool { return v == nil || v == false }; no(r.Get("command")) && no(r.Get("template")) {
			r.Add("command", "No command or template provided")
		}
	},
	runUser,
}

// sidecarMessage is of a sidecar: of a new one, or of a change of what it names.
func sidecarMessage(each func(key string, checks ...check) check) checks {
	return checks{
		message.Keys("name", "command", "process_types", "memory_in_mb"),
		each("name", message.Attribute("name", message.Present, message.String)),
		each("command", message.Attribute("command", message.Present, message.String)),
		each("process_types", message.Attribute("process_types", message.Array,
			message.Is("must have at least 1 process_type", func(v any) bool { return message.Size(v) >= 1 }))),
		message.Optional("memory_in_mb", aboveZero),
	}
}

func always(_ string, all ...check) check {
	return message.When(func(*message.Request) bool { return true }, all...)
}

var buildCreate = checks{
	message.Metadata,
	message.Optional("staging_disk_in_mb", aboveZero),
	message.Optional("staging_memory_in_mb", aboveZero),
	message.Optional("staging_log_rate_limit_bytes_per_second", message.Integer(message.AtLeast(-1), message.AtMost(maxDBBigint))),
	message.Keys("staging_memory_in_mb", "staging_disk_in_mb", "staging_log_rate_limit_bytes_per_second", "environment_variables", "lifecycle", "package", "metadata"),
	message.Given("lifecycle", lifecycleCheck),
	message.At("package.guid", "package_guid", message.Present, message.GUID),
	message.Given("lifecycle", message.At("lifecycle.type", "lifecycle_type", message.String), message.At("lifecycle.data", "lifecycle_data", message.Hash)),
}

// dockerData is CC: validators/docker_data_validator.rb, whose faults are the
// request's own.
func dockerData(r *message.Request) {
	if r.Get("type") != "docker" {
		return
	}
	o, _ := r.Get("data").(*message.Object)
	r.Nest("data", o, checks{message.Attribute("image", message.String, message.Is("required", func(v any) bool { return !message.Blank(v) })),
		message.Keys("image", "username", "password")})
}

var packageCreate = checks{
	message.Metadata,
	message.Keys("relationships", "type", "data", "metadata"),
	dockerData,
	func(r *message.Request) {
		if o, _ := r.Get("data").(*message.Object); r.Get("type") == "bits" && r.Get("data") != nil && (o == nil || len(o.Keys) > 0) {
			r.Add("data", "Data must be empty if provided for bits packages")
		}
	},
	appRelationship,
	message.Attribute("type", message.In("must be one of 'bits, docker'", "bits", "docker")),
}

var dropletCreate = checks{
	message.Keys("relationships", "process_types"),
	appRelationship,
	func(r *message.Request) {
		v := r.Get("process_types")
		o, ok := v.(*message.Object)
		switch {
		case v == nil || v == false:
		case !ok:
			r.Add("process_types", "must be an object")
		default:
			if o.Has("") {
				r.Add("process_types", "key must not be empty")
			}
			if slices.ContainsFunc(valuesOf(o), func(v any) bool { _, ok := v.(string); return !ok }) {
				r.Add("process_types", "value must be a string")
			}
		}
	},
}

// environmentMessage changes variables: CC: update_environment_variables_message.rb.
func environmentMessage(r *message.Request) {
	o, ok := r.Get("var").(*message.Object)
	if !ok {
		r.Add("var", "must be an object")
		return
	}
	for _, k := range o.Keys {
		if fault := message.VariableFault(k); fault != "" {
			r.Add("var", fault)
			continue
		}
		if v := o.Values[k]; v != nil {
			if _, ok := v.(string); !ok {
				r.Base(fmt.Sprintf("Non-string value in environment variable for key '%s', value '%s'", k, message.JSON(v)))
			}
		}
	}
}

var deploymentCreate = checks{
	message.Metadata,
	message.Keys("relationships", "droplet", "revision", "strategy", "options", "metadata"),
	func(r *message.Request) {
		if v := r.Get("strategy"); v != nil && v != cf.Rolling && v != cf.Canary {
			r.Add("strategy", "'"+message.Text(v)+"' is not a supported deployment strategy")
		}
	},
	func(r *message.Request) {
		if !message.Blank(r.Get("revision")) && !message.Blank(r.Get("droplet")) {
			r.Add("droplet", "Cannot set both fields 'droplet' and 'revision'")
		}
	},
	deploymentOptions,
}

func deploymentOptions(r *message.Request) {
	v := r.Get("options")
	if message.Blank(v) {
		return
	}
	o, ok := v.(*message.Object)
	if !ok {
		r.Add("options", "must be an object")
		return
	}
	unsupportedKeys(r, "options", o.Keys, "canary", "max_in_flight", "web_instances", "memory_in_mb", "disk_in_mb", "log_rate_limit_in_bytes_per_second")
	within := func(key, attribute string, rules ...message.Rule) check {
		return message.OptionalAt("options."+key, attribute, rules...)
	}
	for _, c := range scaleChecks(within, "web_instances") {
		c(r)
	}
	if n := o.Get("max_in_flight"); n != nil && n != false && !isWhole(n, 1, maxDBBigint) {
		r.Add("max_in_flight", "must be an integer greater than 0")
	}
	if c := o.Get("canary"); c != nil && c != false {
		canaryOptions(r, c)
	}
}

// unsupportedKeys names the keys that are none of the allowed.
func unsupportedKeys(r *message.Request, attribute string, keys []string, allowed ...string) {
	if keys = slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return slices.Contains(allowed, k) }); len(keys) > 0 {
		r.Add(attribute, "has unsupported key(s): "+strings.Join(keys, ", "))
	}
}

func canaryOptions(r *message.Request, v any) {
	canary, ok := v.(*message.Object)
	switch {
	case !ok:
		r.Add("options.canary", "must be an object")
	case r.Get("strategy") != cf.Canary:
		r.Add("options.canary", "are only valid for Canary deployments")
	case canary.Get("steps") != nil && canary.Get("steps") != false:
		canarySteps(r, canary.Get("steps"))
	}
}

func canarySteps(r *message.Request, v any) {
	const steps, weight = "options.canary.steps", "options.canary.steps.instance_weight"
	list, ok := v.([]any)
	if !ok || slices.ContainsFunc(list, func(v any) bool { _, ok := v.(*message.Object); return !ok }) {
		r.Add(steps, "must be an array of objects")
		return
	}
	var weights []any
	missing := false
	for _, v := range list {
		step := v.(*message.Object)
		unsupportedKeys(r, steps, step.Keys, "instance_weight")
		missing = missing || !step.Has("instance_weight")
		weights = append(weights, step.Get("instance_weight"))
	}
	if missing {
		r.Add(steps, `missing key: "instance_weight"`)
	}
	const inRange = "must be an Integer between 1-100 (inclusive)"
	if slices.ContainsFunc(weights, func(v any) bool { return !isWhole(v, -maxDBBigint, maxDBBigint) }) {
		r.Add(weight, inRange)
		return
	}
	if slices.ContainsFunc(weights, func(v any) bool { return !isWhole(v, 1, 100) }) {
		r.Add(weight, inRange)
	}
	if !slices.IsSortedFunc(weights, func(a, b any) int { return int(wholeOf(a) - wholeOf(b)) }) {
		r.Add(weight, "must be sorted in ascending order")
	}
}

var appMessages = map[string]checks{
	"POST /v3/apps": {
		message.Metadata,
		message.Keys("name", "environment_variables", "relationships", "lifecycle", "metadata"),
		message.Relationships(message.Keys("space"), message.Attribute("space", message.Present, message.ToOne)),
		message.When(typed, lifecycleCheck),
		message.Attribute("name", message.String, message.Max(255)),
		message.Optional("environment_variables", message.Hash),
		message.When(typed, message.At("lifecycle.type", "lifecycle_type", message.String)),
		lifecycleHash,
	},
	"PATCH /v3/apps/{guid}": {
		message.Metadata,
		message.Keys("name", "lifecycle", "metadata"),
		message.Given("lifecycle", lifecycleCheck),
		message.Optional("name", message.String, message.Max(255)),
		message.When(typed, message.At("lifecycle.type", "lifecycle_type", message.String)),
		lifecycleHash,
	},
	"PATCH /v3/apps/{guid}/environment_variables":         {message.Keys("var"), environmentMessage},
	"PATCH /v3/environment_variable_groups/{name}":        {message.Keys("var"), message.When(func(r *message.Request) bool { return len(r.Keys) > 0 }, environmentMessage)},
	"PATCH /v3/apps/{guid}/features/{name}":               {message.Keys("enabled"), message.Attribute("enabled", message.Boolean)},
	"PATCH /v3/apps/{guid}/processes/{type}":              processUpdate,
	"PATCH /v3/processes/{guid}":                          processUpdate,
	"POST /v3/apps/{guid}/processes/{type}/actions/scale": processScale,
	"POST /v3/processes/{guid}/actions/scale":             processScale,
	"POST /v3/apps/{guid}/sidecars":                       sidecarMessage(always),
	"PATCH /v3/sidecars/{guid}":                           sidecarMessage(message.Given),
	"POST /v3/apps/{guid}/tasks":                          taskCreate,
	"PATCH /v3/tasks/{guid}":                              labelsOnly,
	"POST /v3/builds":                                     buildCreate,
	"PATCH /v3/builds/{guid}":                             labelsOnly,
	"POST /v3/packages":                                   packageCreate,
	"POST /v3/packages?source_guid":                       {}, // Cloud Controller looks at nothing but the app
	"PATCH /v3/packages/{guid}":                           {message.Metadata, message.Keys("username", "password", "metadata")},
	"POST /v3/droplets":                                   dropletCreate,
	"POST /v3/droplets?source_guid": {message.Keys("relationships"), message.At("relationships.app", "app", message.Hash),
		message.At("relationships.app.data.guid", "app_guid", message.GUID)},
	"PATCH /v3/droplets/{guid}":    {message.Metadata, message.Optional("image", message.String), message.Keys("image", "metadata")},
	"POST /v3/deployments":         deploymentCreate,
	"PATCH /v3/deployments/{guid}": labelsOnly,
	"PATCH /v3/revisions/{guid}":   labelsOnly,
	"POST /v3/resource_matches":    {resourcesCheck},
}

// resourcesCheck is CC: resource_match_create_message.rb.
func resourcesCheck(r *message.Request) {
	const about = "array contains at least one resource with "
	n := message.Size(r.Get("resources"))
	list, ok := r.Get("resources").([]any)
	if !ok {
		r.Add("resources", "must be an array")
	}
	if n > 5000 {
		r.Add("resources", "array can have at most 5000 resources")
	}
	if n < 1 {
		r.Add("resources", "must have at least 1 resource")
	}
	seen := map[string]bool{}
	for _, v := range list {
		o, _ := v.(*message.Object)
		for _, f := range resourceFaults(o) {
			if !seen[f] {
				r.Add("resources", about+f)
			}
			seen[f] = true
		}
	}
}

func resourceFaults(o *message.Object) (faults []string) {
	checksum, isObject := o.Get("checksum").(*message.Object)
	sum, isText := checksum.Get("value").(string)
	switch {
	case !isObject:
		faults = append(faults, "a non-object checksum")
	case !isText:
		faults = append(faults, "a non-string checksum value")
	case len(sum) != 40:
		faults = append(faults, "a non-SHA1 checksum value")
	}
	switch size := o.Get("size_in_bytes"); {
	case !isWhole(size, -maxDBBigint, maxDBBigint):
		faults = append(faults, "a non-integer size_in_bytes")
	case wholeOf(size) < 0:
		faults = append(faults, "a negative size_in_bytes")
	}
	mode, isText := o.Get("mode").(string)
	switch {
	case o.Get("mode") == nil:
	case !isText:
		faults = append(faults, "a non-string mode")
	case mode == "" || strings.Trim(mode, "01234567") != "":
		faults = append(faults, "an incorrect mode")
	}
	return faults
}
