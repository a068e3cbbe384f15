package manifest

// keysAt puts a path before keys.
func keysAt(at string, keys []Key) []Key {
	placed := make([]Key, len(keys))
	for i, k := range keys {
		k.Path = at + k.Path
		placed[i] = k
	}
	return placed
}

func jobKeys(at string) []Key {
	return keysAt(at, []Key{
		{Path: "name", Use: Used},
		{Path: "release", Use: Used, Text: "one of releases"},
		{Path: "consumes", Use: Used, Text: "links by name; nil: none"},
		{Path: "consumes.*.from", Use: Used},
		{Path: "consumes.*.deployment", Use: Used},
		{Path: "consumes.*.network", Use: Used},
		{Path: "consumes.*.ip_addresses", Use: Warned, Text: "not used: addresses in links are always names"},
		{Path: "consumes.*.properties", Use: Used, Text: "of a manual link"},
		{Path: "consumes.*.address", Use: Used, Text: "of a manual link"},
		{Path: "consumes.*.instances", Use: Used, Text: "of a manual link"},
		{Path: "consumes.*.instances[].name", Use: Used},
		{Path: "consumes.*.instances[].id", Use: Used},
		{Path: "consumes.*.instances[].az", Use: Used},
		{Path: "consumes.*.instances[].address", Use: Used},
		{Path: "consumes.*.instances[].index", Use: Used},
		{Path: "consumes.*.instances[].bootstrap", Use: Used},
		{Path: "provides", Use: Used, Text: "links by name; nil: not offered"},
		{Path: "provides.*.as", Use: Used},
		{Path: "provides.*.shared", Use: Used},
		{Path: "provides.*.aliases", Use: Used, Text: "further names in DNS of the group's instances"},
		{Path: "provides.*.aliases[].domain", Use: Used},
		{Path: "provides.*.aliases[].health_filter", Use: Used, Text: "smart, healthy, unhealthy or all"},
		{Path: "provides.*.aliases[].initial_health_check", Use: Accepted, Text: "health is known"},
		{Path: "provides.*.aliases[].placeholder_type", Use: Used, Text: "if any: _ in the domain stands for each instance"},
		{Path: "provides.*.ip_addresses", Use: Warned, Text: "not used: addresses in links are always names"},
		{Path: "custom_provider_definitions", Use: Used},
		{Path: "custom_provider_definitions[].name", Use: Used},
		{Path: "custom_provider_definitions[].type", Use: Used},
		{Path: "custom_provider_definitions[].properties", Use: Used},
		{Path: "properties", Use: Used, Text: "what templates are rendered from"},
		{Path: "properties.quarks", Use: Used, Text: "how its containers run"},
		{Path: "properties.bosh_containerization", Use: Used, Text: "the same, of old"},
	})
}

func quarksKeys(at string) []Key {
	keys := []Key{
		{Path: "ports", Use: Used},
		{Path: "ports[].name", Use: Used},
		{Path: "ports[].protocol", Use: Used, Text: "TCP or UDP"},
		{Path: "ports[].internal", Use: Used},
		{Path: "run", Use: Used},
		{Path: "run.healthcheck", Use: Used, Text: "by process"},
		{Path: "run.healthcheck.*.readiness", Use: Used, Text: "a process that fails it is removed from DNS and routes"},
		{Path: "run.healthcheck.*.liveness", Use: Used, Text: "a process that fails it is restarted"},
		{Path: "run.scaling", Use: Used},
		{Path: "run.scaling.min", Use: Used, Text: "fewer instances are refused"},
		{Path: "run.scaling.max", Use: Used, Text: "more instances are refused"},
		{Path: "run.scaling.ha", Use: Used, Text: "fewer instances are warned of"},
		{Path: "run.capabilities", Use: Used, Text: "beside those of the processes"},
		{Path: "run.memory", Use: Used, Text: "MB; overrides vm_resources"},
		{Path: "run.virtual-cpus", Use: Used, Text: "overrides vm_resources"},
		{Path: "run.security_context", Use: Used},
		{Path: "bpm", Use: Used},
		{Path: "bpm.processes", Use: Used, Text: "merged by name over those of the release"},
		{Path: "bpm.unsupported_template", Use: Accepted, Text: "bpm.yml may differ by instance anyway"},
		{Path: "envs", Use: Used, Text: "override the environment of processes"},
		{Path: "pre_render_scripts", Use: Used},
		{Path: "pre_render_scripts.bpm", Use: Used},
		{Path: "pre_render_scripts.ig_resolver", Use: Used},
		{Path: "pre_render_scripts.jobs", Use: Used},
		{Path: "post_start", Use: Used},
		{Path: "post_start.condition", Use: Used},
		{Path: "post_start.condition.exec", Use: Used},
		{Path: "post_start.condition.exec.command", Use: Used, Text: "has to succeed before bin/post-start runs"},
		{Path: "activePassiveProbes", Use: Used, Text: "by container; who passes is the active instance"},
	}
	for _, internal := range []string{"debug", "consumes", "instances", "is_addon", "release"} {
		keys = append(keys, Key{Path: internal, Use: Warned, Text: "not used: it is internal to cf-operator"})
	}
	for _, probe := range []string{"run.healthcheck.*.readiness.", "run.healthcheck.*.liveness.", "activePassiveProbes.*."} {
		keys = append(keys, keysAt(probe, probeKeys)...)
		keys = append(keys, keysAt(probe, handlerKeys)...)
		keys = append(keys, Key{Path: probe + "handler", Use: Used, Text: "holds exec, httpGet, tcpSocket or grpc, of old"})
		keys = append(keys, keysAt(probe+"handler.", handlerKeys)...)
	}
	return keysAt(at, keys)
}

var probeKeys = []Key{
	{Path: "initialDelaySeconds", Use: Used},
	{Path: "timeoutSeconds", Use: Used},
	{Path: "periodSeconds", Use: Used},
	{Path: "successThreshold", Use: Used},
	{Path: "failureThreshold", Use: Used},
	{Path: "terminationGracePeriodSeconds", Use: Used},
}

var handlerKeys = []Key{
	{Path: "exec", Use: Used},
	{Path: "exec.command", Use: Used},
	{Path: "httpGet", Use: Used},
	{Path: "httpGet.path", Use: Used},
	{Path: "httpGet.port", Use: Used},
	{Path: "httpGet.host", Use: Used},
	{Path: "httpGet.scheme", Use: Used},
	{Path: "httpGet.httpHeaders", Use: Used},
	{Path: "tcpSocket", Use: Used},
	{Path: "tcpSocket.port", Use: Used},
	{Path: "tcpSocket.host", Use: Used},
	{Path: "grpc", Use: Used},
	{Path: "grpc.port", Use: Used},
	{Path: "grpc.service", Use: Used},
}

var addonKeys = append([]Key{
	{Path: "addons", Use: Used, Text: "jobs for all groups that the rules pick, as in BOSH"},
	{Path: "addons[].name", Use: Used},
	{Path: "addons[].jobs", Use: Used},
}, append(placementKeys("addons[].include"), placementKeys("addons[].exclude")...)...)

func placementKeys(at string) []Key {
	return append([]Key{{Path: at, Use: Used, Text: "all parts have to hold, each by any of its values"}}, keysAt(at+".", []Key{
		{Path: "stemcell", Use: Used},
		{Path: "stemcell[].os", Use: Used},
		{Path: "stemcell[].version", Use: Used},
		{Path: "deployments", Use: Used},
		{Path: "jobs", Use: Used},
		{Path: "jobs[].name", Use: Used},
		{Path: "jobs[].release", Use: Used},
		{Path: "instance_groups", Use: Used},
		{Path: "networks", Use: Used},
		{Path: "teams", Use: Warned, Text: "there are no teams: it matches nothing"},
		{Path: "azs", Use: Used},
		{Path: "lifecycle", Use: Used, Text: "errands are picked by this alone"},
	})...)
}

var tailKeys = []Key{
	{Path: "properties", Use: Refused, Text: "properties of deployments are deprecated; move them to the jobs"},
	{Path: "variables", Use: Used},
	{Path: "variables[].name", Use: Used},
	{Path: "variables[].type", Use: Used, Text: "password, certificate, rsa or ssh"},
	{Path: "variables[].options", Use: Used},
	{Path: "variables[].update_mode", Use: Used, Text: "no-overwrite, overwrite or converge"},
	{Path: "variables[].consumes", Use: Warned, Text: "not used: give alternative_names and common_name"},
	{Path: "tags", Use: Used, Text: "annotations of all objects"},
}
