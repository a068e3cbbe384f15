package manifest

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestWrongTypes has properties of wrong types, and what Cloud Controller's messages say
// of them; nothing of what it passes over (CC: AppManifestMessage, and the messages that it
// asks).
func TestWrongTypes(t *testing.T) {
	const (
		web      = `Process "web": `
		number   = " is not a number"
		unit     = " must use a supported unit: B, K, KB, M, MB, G, GB, T, or TB"
		kind     = ` must be "port", "process", or "http"`
		path     = " must be a valid URI path"
		features = "Features must be a map of valid feature names to booleans (true = enabled, false = disabled)"
		routes   = "Routes must be a list of route objects"
		services = "Services must be a list of service instances"
		between  = " must be between 1 and 4096 characters"
	)
	for text, want := range map[string]string{
		"lifecycle: {a: 1}": "", "lifecycle: docker": "", "lifecycle: [cnb]": "", "lifecycle: 1": "",
		"memory: []": "", "memory: {}": "", "memory: false": "", "memory: ''": "", "memory: null": "",
		"memory: true": web + "Memory" + number, "memory: [1]": web + "Memory" + number, "memory: {a: 1}": web + "Memory" + number, "memory: x": web + "Memory" + number,
		"memory: 1.5": web + "Memory" + unit, "memory: 1X": web + "Memory" + unit, "memory: 0M": web + "Memory must be greater than 0MB",
		"disk_quota: []": "", "disk-quota: {a: 1}": web + "Disk quota" + number, "log-rate-limit-per-second: [1]": web + "Log rate limit per second" + number,
		"log_rate_limit_per_second: -2M": web + "Log rate limit must be an integer greater than or equal to -1",
		"instances: a":                   web + "Instances" + number, "instances: []": web + "Instances" + number, "instances: {}": web + "Instances" + number, "instances: true": web + "Instances" + number,
		"instances: 1.0": web + "Instances must be an integer", "instances: '2'": "", "instances: null": "",
		"timeout: x": web + "Timeout" + number, "timeout: [1]": web + "Timeout" + number, "timeout: 0": web + "Timeout must be greater than or equal to 1",
		"health-check-type: 3": web + "Health check type" + kind, "health-check-type: [http]": web + "Health check type" + kind, "health-check-type: null": web + "Health check type" + kind,
		"readiness-health-check-type: {}": web + "Readiness health check type" + kind,
		"health-check-http-endpoint: 3":   web + "Health check http endpoint" + path, "health-check-http-endpoint: /a b": web + "Health check http endpoint" + path,
		"readiness-health-check-http-endpoint: []": web + "Readiness health check http endpoint" + path, "health-check-http-endpoint: null": "",
		"health-check-interval: x": web + "Health check interval" + number, "readiness-health-check-invocation-timeout: []": web + "Readiness health check invocation timeout" + number,
		"command: 3": web + "Command must be a string", "command: {a: 1}": web + "Command must be a string", "command: false": "",
		"command: []": web + "Command must be a string|" + web + "Command" + between, "command: ''": web + "Command" + between,
		"stack: 2": "Stack must be a string", "stack: false": "Stack must be a string", "stack: []": "Stack must be a string|Stack" + between,
		"buildpacks: 4": "Buildpacks must be an array", "buildpacks: x": "Buildpacks must be an array", "buildpacks: {}": "Buildpacks must be an array",
		"buildpacks: [1, '']": "Buildpacks can only contain strings|Buildpacks entries" + between,
		"buildpack: 3":        "Buildpack must be a string", "buildpack: {}": "Buildpack must be a string|Buildpack" + between,
		"buildpack: x, buildpacks: null": "Buildpack and Buildpacks fields cannot be used together.",
		"docker: 1":                      "", "docker: {image: x}, buildpacks: null": "Cannot specify both buildpack(s) and docker keys",
		"env: x": "Env must be an object of keys and values", "env: []": "Env must be an object of keys and values", "env: null": "Env must be an object of keys and values",
		"env: {A: [1]}": "", "env: {vcap_x: 1}": "Env cannot start with VCAP_",
		"services: {}": services, "services: x": services, "services: null": services, "services: [1]": services, "services: [{name: a, parameters: x}]": services,
		"services: [{name: a, binding_name: 1}]": services, "services: [{name: a, extra: 1}]": services, "services: [{parameters: {}}]": services,
		"processes: 1": "Processes must be an array of process configurations", "processes: {}": "Processes must be an array of process configurations",
		"processes: null": "Processes must be an array of process configurations", "processes: [1]": "Processes must be an array of process configurations",
		"processes: [{type: []}]": "All Processes must specify a type", "processes: [{type: 5}]": "",
		"processes: [{type: w, memory: {a: 1}}]": `Process "w": Memory` + number, "processes: [{type: w, health_check_type: 3}]": `Process "w": Health check type` + kind,
		"processes: [{type: w, user: 5}]": `Process "w": User must be a string`, "processes: [{type: w, instances: [1]}]": `Process "w": Instances` + number,
		"metadata: 3": "Metadata must be an object", "metadata: []": "Metadata must be an object", "metadata: false": "Metadata must be an object", "metadata: null": "",
		"metadata: {labels: 3}": "Metadata 'labels' is not an object", "metadata: {annotations: [a]}": "Metadata 'annotations' is not an object", "metadata: {labels: {2024: x, true: y}}": "",
		"sidecars: 3": "Sidecars must be an array of sidecar configurations", "sidecars: null": "Sidecars must be an array of sidecar configurations",
		"sidecars: [{name: 3, command: [], process_types: x}]": `Sidecar "3": Name must be a string|Sidecar "3": Command can't be blank|Sidecar "3": Command must be a string|Sidecar "3": Process types must be an array`,
		"sidecars: [{}]": "Sidecar name can't be blank|Sidecar name must be a string|Sidecar command can't be blank|Sidecar command must be a string|" +
			"Sidecar process types must be an array|Sidecar process types must have at least 1 process_type",
		"sidecars: [{name: s, command: c, process_types: [w], memory: []}]": `Sidecar "s": Memory in mb is not a number`,
		"no-route: 3": "No-route must be a boolean", "random-route: x": "Random-route must be a boolean", "default-route: []": "Default-route must be a boolean",
		"random_route: x": "Random-route must be a boolean", "no-route: null": "",
		"routes: 3": routes, "routes: {}": routes, "routes: null": routes, "routes: [a.b]": routes, "routes: [{route: ''}]": routes, "routes: []": "",
		"routes: [{route: a.b, protocol: 3}]":  "Route protocol must be 'http1', 'http2' or 'tcp'.",
		"routes: [{route: a.b, protocol: ''}]": "Route protocol must be 'http1', 'http2' or 'tcp'.", "routes: [{route: a.b, protocol: {}}]": "Route protocol must be 'http1', 'http2' or 'tcp'.",
		"features: 3": features, "features: {}": features, "features: null": features, "features: {ssh: on-call}": features, "features: [ssh]": features,
		"cnb-credentials: 3": "Credentials must be an object", "cnb-credentials: []": "Credentials must be an object",
	} {
		got := ""
		if _, err := Parse([]byte("applications: [{name: a, " + text + "}]")); err != nil {
			faults, _ := errors.AsType[Invalid](err)
			got = strings.ReplaceAll(strings.Join(faults, "|"), "For application 'a': ", "")
			if faults == nil {
				got = err.Error()
			}
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// TestWrongTypesOfAll has those of a manifest as a whole.
func TestWrongTypesOfAll(t *testing.T) {
	const none = "Cannot parse manifest with no 'applications' field."
	for text, want := range map[string]string{
		"version: null\napplications: [{name: a}]": "", "version: 1.0\napplications: [{name: a}]": "", "version: false\napplications: [{name: a}]": "",
		"version: '1'\napplications: [{name: a}]": "Unsupported manifest schema version. Currently supported versions: [1].",
		"version: {}\napplications: [{name: a}]":  "Unsupported manifest schema version. Currently supported versions: [1].",
		"applications: {}":                        none, "applications: 3": none, "applications: x": none, "Applications: [{name: a}]": none,
		"applications: [{name: []}]":    "For application at index 0: Name must not be empty, For application at index 0: Name must be a string",
		"applications: [{name: false}]": "For application at index 0: Name must not be empty, For application at index 0: Name must be a string",
		"applications: [{name: 3}]":     "For application '3': Name must be a string",
		"applications: [{name: ' '}]":   "For application at index 0: Name must not be empty",
		"- a":                           errSyntax.Error(), "x": errSyntax.Error(), "": errSyntax.Error(),
	} {
		got := ""
		if _, err := Parse([]byte(text)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// TestKeysOfAnyForm reads keys with hyphens, with underscores and in camel case alike.
func TestKeysOfAnyForm(t *testing.T) {
	apps := map[string]App{}
	for form, text := range map[string]string{
		"hyphens": `{name: a, disk-quota: 1G, health-check-type: http, health-check-http-endpoint: /x, readiness-health-check-interval: 5, no-route: true,
			log-rate-limit-per-second: 1K, cnb-credentials: {r: {}}, processes: [{type: w, health-check-type: process, disk-quota: 2G}]}`,
		"underscores": `{name: a, disk_quota: 1G, health_check_type: http, health_check_http_endpoint: /x, readiness_health_check_interval: 5, no_route: true,
			log_rate_limit_per_second: 1K, cnb_credentials: {r: {}}, processes: [{type: w, health_check_type: process, disk_quota: 2G}]}`,
		"camel case": `{Name: a, diskQuota: 1G, healthCheckType: http, healthCheckHttpEndpoint: /x, readinessHealthCheckInterval: 5, noRoute: true,
			logRateLimitPerSecond: 1K, cnbCredentials: {r: {}}, processes: [{Type: w, healthCheckType: process, diskQuota: 2G}]}`,
	} {
		m, err := Parse([]byte("applications: [" + text + "]"))
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		apps[form] = m.Apps[0]
	}
	if p := apps["hyphens"].Processes; len(p) != 2 || *p[0].DiskMB != 1024 || *p[0].Health.Type != "http" || *p[1].Health.Type != "process" || !apps["hyphens"].NoRoute {
		t.Errorf("got %+v", apps["hyphens"])
	}
	for form, app := range apps {
		if d := cmp.Diff(apps["hyphens"], app, cmpopts.IgnoreUnexported(App{})); d != "" {
			t.Errorf("%s: %s", form, d)
		}
	}
}
