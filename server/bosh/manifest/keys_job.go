package manifest

// keysAt puts a path before keys.
func keysAt(at string, keys []key) []key {
	placed := make([]key, len(keys))
	for i, k := range keys {
		k.Path = at + k.Path
		placed[i] = k
	}
	return placed
}

func jobKeys(at string) []key {
	return keysAt(at, []key{
		{Path: "name", Use: used},
		{Path: "release", Use: used, Text: "one of releases"},
		{Path: "consumes", Use: used, Text: "links by name; nil: none"},
		{Path: "consumes.*.from", Use: used},
		{Path: "consumes.*.deployment", Use: used},
		{Path: "consumes.*.network", Use: used},
		{Path: "consumes.*.ip_addresses", Use: warned, Text: "not used: addresses in links are always names"},
		{Path: "consumes.*.properties", Use: used, Text: "of a manual link"},
		{Path: "consumes.*.address", Use: used, Text: "of a manual link"},
		{Path: "consumes.*.instances", Use: used, Text: "of a manual link"},
		{Path: "consumes.*.instances[].name", Use: used},
		{Path: "consumes.*.instances[].id", Use: used},
		{Path: "consumes.*.instances[].az", Use: used},
		{Path: "consumes.*.instances[].address", Use: used},
		{Path: "consumes.*.instances[].index", Use: used},
		{Path: "consumes.*.instances[].bootstrap", Use: used},
		{Path: "provides", Use: used, Text: "links by name; nil: not offered"},
		{Path: "provides.*.as", Use: used},
		{Path: "provides.*.shared", Use: used},
		{Path: "provides.*.aliases", Use: used, Text: "further names in DNS of the group's instances"},
		{Path: "provides.*.aliases[].domain", Use: used},
		{Path: "provides.*.aliases[].health_filter", Use: used, Text: "smart, healthy, unhealthy or all"},
		{Path: "provides.*.aliases[].initial_health_check", Use: accepted, Text: "health is known"},
		{Path: "provides.*.aliases[].placeholder_type", Use: used, Text: "if any: _ in the domain stands for each instance"},
		{Path: "provides.*.ip_addresses", Use: warned, Text: "not used: addresses in links are always names"},
		{Path: "custom_provider_definitions", Use: used},
		{Path: "custom_provider_definitions[].name", Use: used},
		{Path: "custom_provider_definitions[].type", Use: used},
		{Path: "custom_provider_definitions[].properties", Use: used},
		{Path: "properties", Use: used, Text: "what templates are rendered from"},
		{Path: "properties.quarks", Use: used, Text: "how its containers run"},
		{Path: "properties.bosh_containerization", Use: used, Text: "the same, of old"},
	})
}

func quarksKeys(at string) []key {
	keys := []key{
		{Path: "ports", Use: used},
		{Path: "ports[].name", Use: used},
		{Path: "ports[].protocol", Use: used, Text: "TCP or UDP"},
		{Path: "ports[].internal", Use: used},
		{Path: "run", Use: used},
		{Path: "run.healthcheck", Use: used, Text: "by process"},
		{Path: "run.healthcheck.*.readiness", Use: used, Text: "a process that fails it is removed from DNS and routes"},
		{Path: "run.healthcheck.*.liveness", Use: used, Text: "a process that fails it is restarted"},
		{Path: "run.scaling", Use: used},
		{Path: "run.scaling.min", Use: used, Text: "fewer instances are refused"},
		{Path: "run.scaling.max", Use: used, Text: "more instances are refused"},
		{Path: "run.scaling.ha", Use: used, Text: "fewer instances are warned of"},
		{Path: "run.capabilities", Use: used, Text: "besides those of the processes"},
		{Path: "run.memory", Use: used, Text: "MB; overrides vm_resources"},
		{Path: "run.virtual-cpus", Use: used, Text: "overrides vm_resources"},
		{Path: "run.security_context", Use: used},
		{Path: "bpm", Use: used},
		{Path: "bpm.processes", Use: used, Text: "merged by name over those of the release"},
		{Path: "bpm.unsupported_template", Use: accepted, Text: "bpm.yml may differ by instance anyway"},
		{Path: "envs", Use: used, Text: "override the environment of processes"},
		{Path: "pre_render_scripts", Use: used},
		{Path: "pre_render_scripts.bpm", Use: used},
		{Path: "pre_render_scripts.ig_resolver", Use: used},
		{Path: "pre_render_scripts.jobs", Use: used},
		{Path: "post_start", Use: used},
		{Path: "post_start.condition", Use: used},
		{Path: "post_start.condition.exec", Use: used},
		{Path: "post_start.condition.exec.command", Use: used, Text: "has to succeed before bin/post-start runs"},
		{Path: "activePassiveProbes", Use: used, Text: "by container; who passes is the active instance"},
	}
	for _, internal := range []string{"debug", "consumes", "instances", "is_addon", "release"} {
		keys = append(keys, key{Path: internal, Use: warned, Text: "not used: it is internal to cf-operator"})
	}
	for _, probe := range []string{"run.healthcheck.*.readiness.", "run.healthcheck.*.liveness.", "activePassiveProbes.*."} {
		keys = append(keys, keysAt(probe, probeKeys)...)
		keys = append(keys, keysAt(probe, handlerKeys)...)
		keys = append(keys, key{Path: probe + "handler", Use: used, Text: "holds exec, httpGet, tcpSocket or grpc, of old"})
		keys = append(keys, keysAt(probe+"handler.", handlerKeys)...)
	}
	return keysAt(at, keys)
}

var probeKeys = []key{
	{Path: "initialDelaySeconds", Use: used},
	{Path: "timeoutSeconds", Use: used},
	{Path: "periodSeconds", Use: used},
	{Path: "successThreshold", Use: used},
	{Path: "failureThreshold", Use: used},
	{Path: "terminationGracePeriodSeconds", Use: used},
}

var handlerKeys = []key{
	{Path: "exec", Use: used},
	{Path: "exec.command", Use: used},
	{Path: "httpGet", Use: used},
	{Path: "httpGet.path", Use: used},
	{Path: "httpGet.port", Use: used},
	{Path: "httpGet.host", Use: used},
	{Path: "httpGet.scheme", Use: used},
	{Path: "httpGet.httpHeaders", Use: used},
	{Path: "tcpSocket", Use: used},
	{Path: "tcpSocket.port", Use: used},
	{Path: "tcpSocket.host", Use: used},
	{Path: "grpc", Use: used},
	{Path: "grpc.port", Use: used},
	{Path: "grpc.service", Use: used},
}

var addonKeys = append([]key{
	{Path: "addons", Use: used, Text: "jobs for all groups that the rules pick, as in BOSH"},
	{Path: "addons[].name", Use: used},
	{Path: "addons[].jobs", Use: used},
}, append(placementKeys("addons[].include"), placementKeys("addons[].exclude")...)...)

func placementKeys(at string) []key {
	return append([]key{{Path: at, Use: used, Text: "all parts have to hold, each by any of its values"}}, keysAt(at+".", []key{
		{Path: "stemcell", Use: used},
		{Path: "stemcell[].os", Use: used},
		{Path: "stemcell[].version", Use: used},
		{Path: "deployments", Use: used},
		{Path: "jobs", Use: used},
		{Path: "jobs[].name", Use: used},
		{Path: "jobs[].release", Use: used},
		{Path: "instance_groups", Use: used},
		{Path: "networks", Use: used},
		{Path: "teams", Use: warned, Text: "there are no teams: it matches nothing"},
		{Path: "azs", Use: used},
		{Path: "lifecycle", Use: used, Text: "errands are picked by this alone"},
	})...)
}

var tailKeys = []key{
	{Path: "properties", Use: refused, Text: "properties of deployments are deprecated; move them to the jobs"},
	{Path: "variables", Use: used},
	{Path: "variables[].name", Use: used},
	{Path: "variables[].type", Use: used, Text: "password, certificate, rsa or ssh"},
	{Path: "variables[].options", Use: used},
	{Path: "variables[].update_mode", Use: used, Text: "no-overwrite, overwrite or converge"},
	{Path: "variables[].consumes", Use: warned, Text: "not used: give alternative_names and common_name"},
	{Path: "tags", Use: used, Text: "annotations of all objects"},
}
