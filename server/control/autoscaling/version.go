package autoscaling

// version is the newer format of a policy, and of the parameters of a binding (App Autoscaler: api/broker/binding_request_parser/v0_1). A
// field that it does not have is an error.
const version = "0.1"

var versionedSchema = all(
	closed(policyFields(map[string]schema{
		"schema-version": enum(version),
		"configuration":  all(configurationSchema, anyOf("custom_metrics", "app_guid")),
	}), "schema-version", "instance_min_count", "instance_max_count"),
	anyOf("scaling_rules", "schedules"))

var configurationSchema = closed(map[string]schema{
	"custom_metrics": closed(map[string]schema{"metric_submission_strategy": strategySchema}, "metric_submission_strategy"),
	"app_guid":       appGUIDSchema,
})

var appGUIDSchema = pattern(`(\d|[a-f]){8}-(\d|[a-f]){4}-(\d|[a-f]){4}-(\d|[a-f]){4}-(\d|[a-f]){12}`)

// keySchema is that of a service key without a policy, which names its app.
var keySchema = closed(map[string]schema{
	"schema-version": enum(version),
	"configuration":  closed(map[string]schema{"app_guid": appGUIDSchema}, "app_guid"),
}, "schema-version", "configuration")

// Parameters are those of a binding, or a policy alone.
type Parameters struct {
	Policy     *Policy // nil: there is none
	Known      string  // the policy as JSON, without what it does not know; "" for none
	AppGUID    string  // of a service key's app; "" for none
	Credential string  // the type of credentials for custom metrics; "" for none
}

// validate finds what is wrong with parameters of either format.
func validate(found *Violations, value any) {
	o, ok := value.(map[string]any)
	if !ok || o["schema-version"] != version {
		policySchema(found, root, value)
		return
	}
	s := versionedSchema
	if isKey(o) {
		s = keySchema
	}
	var all Violations
	if s(&all, root, o); len(all) > 0 {
		found.add(root, "Must validate one and only one schema (oneOf)")
		*found = append(*found, all...)
	}
}

// isKey reports whether parameters have no policy, but name an app.
func isKey(o map[string]any) bool {
	configuration, _ := o["configuration"].(map[string]any)
	_, named := configuration["app_guid"]
	return named && configuration["custom_metrics"] == nil && count(o, []string{"instance_min_count", "instance_max_count", "scaling_rules", "schedules"}) == 0
}

// take takes what is not part of a policy out of parameters that are right.
func take(o map[string]any) (p Parameters) {
	p.Credential, _ = o["credential-type"].(string)
	configuration, _ := o["configuration"].(map[string]any)
	p.AppGUID, _ = configuration["app_guid"].(string)
	for _, name := range []string{"schema-version", "credential-type"} {
		delete(o, name)
	}
	if delete(configuration, "app_guid"); len(configuration) == 0 {
		delete(o, "configuration")
	}
	return p
}
