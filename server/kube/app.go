package kube

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cupola/runtime/pattern"
	"cupola/server/bosh/manifest"
	"cupola/server/desire"
	"cupola/store/cf"
)

// App is a pushed app, and all that belongs to it.
type App struct {
	Name      string
	Image     string // what its processes run in
	Launcher  bool   // the image starts commands as Cloud Foundry does; else they are a shell's
	Env       map[string]string
	Processes []AppProcess
	Bindings  []AppBinding
	Routes    []AppRoute
	Tasks     []string // names of those that were run, which are not written
}

// AppProcess is a process of an app.
type AppProcess struct {
	Type              string
	Command           string // "" is the image's own, or the launcher's
	User              string // overrides the image's user
	Instances         int
	MemoryMB, DiskMB  int // 0 for no bound
	Health, Readiness cf.HealthCheck
	Sidecars          []cf.Sidecar
}

// AppBinding is a service that an app is bound to.
type AppBinding struct {
	Name        string // of the binding, or of the service instance
	Type        string // the offering's name, or user-provided
	Provider    string
	Credentials map[string]any
}

// AppRoute is a route to a process of an app.
type AppRoute struct {
	Host, Path string
	Process    string
	Port       int // 0: 8080
	TCPPort    int // the port that it has instead of a host; 0 for one with a host
}

// AppOptions say how an app is written.
type AppOptions struct {
	Namespace   string
	WithSecrets bool
	Stateful    bool   // as StatefulSets, so that instances know their index
	Gateway     string // routes are HTTPRoutes of this Gateway, not an Ingress
	Ingress     string // the Ingress's class; "" is the cluster's default
	PullSecret  string // with the registry's credentials; "" for none
}

// appPort is where a process listens that says nothing else.
const appPort = 8080

// bindingRoot is where bindings are mounted, one directory each, as
// servicebinding.io has them.
const bindingRoot = "/bindings"

// RenderApp renders an app as objects, in the order in which to apply them.
func RenderApp(app App, o AppOptions) ([]Object, []Warning, error) {
	if app.Image == "" {
		return nil, nil, errors.New("the app has no image")
	}
	a := &appRendering{App: app, AppOptions: o, r: rendering{Options: Options{Namespace: o.Namespace, WithSecrets: o.WithSecrets}}}
	a.secrets()
	for i := range app.Processes {
		a.workload(&app.Processes[i])
	}
	a.routes()
	for _, name := range slices.Compact(slices.Sorted(slices.Values(app.Tasks))) {
		a.r.warn("/tasks/name="+name, "tasks are not written: a Job with the image of Deployment %s and the task's command does the same", a.name(""))
	}
	all, err := sorted(a.r.objects)
	return all, a.r.warnings, err
}

// appRendering is a RenderApp under way. Its rendering takes objects and
// warnings.
type appRendering struct {
	App
	AppOptions
	r rendering
}

// name is that of the app's part; "" and web are the app itself.
func (a *appRendering) name(part string) string {
	if part == "" || part == "web" {
		return manifest.Sanitize(a.Name)
	}
	return manifest.Sanitize(a.Name + "-" + part)
}

func (a *appRendering) labels(process string) doc {
	l := doc{managedBy: "cupola", "app.kubernetes.io/name": a.name("")}
	if process != "" {
		l["app.kubernetes.io/component"] = manifest.Sanitize(process)
	}
	return l
}

func (a *appRendering) meta(name, process, source string) doc {
	return without(doc{"name": name, "namespace": a.Namespace, "labels": a.labels(process), "annotations": doc{sourceKey: source}})
}

// secrets adds that of the environment, and one for each binding.
func (a *appRendering) secrets() {
	if len(a.Env) > 0 {
		values := map[string][]byte{}
		for name, value := range a.Env {
			values[name] = []byte(value)
		}
		a.valid("/environment_variables", values)
		a.r.add(a.r.secret(a.meta(a.name("env"), "", "environment of app "+a.Name), opaque, values))
	}
	for _, b := range a.Bindings {
		values := b.entries()
		a.valid("/bindings/name="+b.Name, values)
		a.r.add(a.r.secret(a.meta(a.bindingSecret(b), "", "binding "+b.Name+" of app "+a.Name), "servicebinding.io/"+manifest.Sanitize(b.Type), values))
	}
}

var secretKey = pattern.Lazy(`^[-._a-zA-Z0-9]{1,253}$`)

// valid drops entries whose names Kubernetes does not accept, with a warning.
func (a *appRendering) valid(path string, values map[string][]byte) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !secretKey().MatchString(name) {
			a.r.warn(path, "%q cannot be a key of a Secret: it is left out", name)
			delete(values, name)
		}
	}
}

func (a *appRendering) bindingSecret(b AppBinding) string { return a.name("binding-" + b.Name) }

// entries are the files of a binding: texts as they are, all else as JSON.
func (b AppBinding) entries() map[string][]byte {
	all := map[string][]byte{}
	for key, value := range b.Credentials {
		if s, ok := value.(string); ok {
			all[key] = []byte(s)
		} else if text, err := json.Marshal(value); err == nil {
			all[key] = text
		}
	}
	all["type"] = []byte(b.Type)
	if b.Provider != "" {
		all["provider"] = []byte(b.Provider)
	}
	return all
}

// workload adds what runs a process.
func (a *appRendering) workload(p *AppProcess) {
	pull := []any{}
	if a.PullSecret != "" {
		pull = append(pull, doc{"name": a.PullSecret})
	}
	spec := doc{"replicas": p.Instances, "selector": doc{"matchLabels": a.labels(p.Type)}, "template": doc{
		"metadata": doc{"labels": a.labels(p.Type)},
		"spec": without(doc{
			"automountServiceAccountToken": false, "enableServiceLinks": false, "containers": a.containers(p), "volumes": a.volumes(), "imagePullSecrets": pull,
			"securityContext": doc{"seccompProfile": doc{"type": "RuntimeDefault"}},
		}),
	}}
	kind := "Deployment"
	if a.Stateful {
		kind = "StatefulSet"
		spec["serviceName"], spec["podManagementPolicy"] = a.name(p.Type), "Parallel"
	}
	meta := a.meta(a.name(p.Type), p.Type, fmt.Sprintf("process %s of app %s", p.Type, a.Name))
	a.r.add(Object{"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec})
	if ports := a.ports(p.Type); len(ports) > 0 || a.Stateful {
		list := []any{}
		for _, n := range ports {
			list = append(list, doc{"name": fmt.Sprintf("port-%d", n), "port": n, "targetPort": n, "protocol": "TCP"})
		}
		a.r.add(Object{"apiVersion": "v1", "kind": "Service", "metadata": a.meta(a.name(p.Type), p.Type, text(child(meta, "annotations"), sourceKey)),
			"spec": without(a.headless(doc{"selector": a.labels(p.Type), "ports": list}, len(ports)))})
	}
}

// headless makes a Service without ports headless.
func (a *appRendering) headless(spec doc, ports int) doc {
	if ports == 0 {
		spec["clusterIP"] = "None"
	}
	return spec
}

// ports are those that routes lead to.
func (a *appRendering) ports(process string) (all []int) {
	for _, r := range a.Routes {
		if r.Process == process {
			all = append(all, cmp.Or(r.Port, appPort))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// containers are that of the process, and one for each of its sidecars.
func (a *appRendering) containers(p *AppProcess) []any {
	port := appPort
	if ports := a.ports(p.Type); len(ports) > 0 && !a.Launcher {
		port = ports[0]
	}
	env, memory := a.env(p, port), p.MemoryMB
	names := map[string]bool{}
	var beside []any
	for _, s := range p.Sidecars {
		path := "/processes/" + p.Type + "/sidecars/name=" + s.Name
		name := manifest.Sanitize(p.Type + "-" + s.Name)
		if names[name] {
			a.r.warn(path, "another sidecar's container is %s too: this one is left out", name)
			continue
		}
		names[name] = true
		if memory -= s.MemoryMB; s.MemoryMB == 0 && p.MemoryMB > 0 {
			a.r.warn(path, "it has no memory limit, and containers share none: its container has no limit")
		}
		beside = append(beside, without(a.container(name, s.Command, env, s.MemoryMB, 0)))
		a.r.warn(path, "its container shares the pod's addresses with the process, but no files, and ends apart from it")
	}
	c := a.container(manifest.Sanitize(p.Type), p.Command, env, memory, p.DiskMB)
	c["ports"] = []any{doc{"containerPort": port, "protocol": "TCP"}}
	p.probes(c, port)
	if p.User != "" {
		a.r.warn("/processes/"+p.Type+"/user", "it runs as the image's user, not as %s: Kubernetes takes numbers (securityContext.runAsUser)", p.User)
	}
	return append([]any{without(c)}, beside...)
}

func (a *appRendering) container(name, command string, env []any, memoryMB, diskMB int) doc {
	c := doc{"name": name, "image": a.Image, "env": env, "volumeMounts": a.mounts(), "securityContext": doc{"allowPrivilegeEscalation": false}, "resources": limits(memoryMB, diskMB)}
	switch {
	case a.Launcher:
		c["args"] = escapedAll(desire.LauncherArgs(command))
	case command != "":
		c["command"], c["args"] = []any{"/bin/sh", "-c"}, []any{escaped(command)}
	}
	if len(a.Env) > 0 {
		c["envFrom"] = []any{doc{"secretRef": doc{"name": a.name("env")}}}
	}
	return c
}

// limits are those of a container; 0 is none.
func limits(memoryMB, diskMB int) doc {
	limits := doc{}
	if memoryMB > 0 {
		limits["memory"] = fmt.Sprintf("%dMi", memoryMB)
	}
	if diskMB > 0 {
		limits["ephemeral-storage"] = fmt.Sprintf("%dMi", diskMB)
	}
	return without(doc{"limits": limits})
}

// env returns the environment variables that Cloud Foundry sets.
func (a *appRendering) env(p *AppProcess, port int) []any {
	field := func(name, path string) doc {
		return doc{"name": name, "valueFrom": doc{"fieldRef": doc{"fieldPath": path}}}
	}
	env := []any{
		doc{"name": "PORT", "value": strconv.Itoa(port)}, doc{"name": "VCAP_APP_HOST", "value": "0.0.0.0"}, doc{"name": "VCAP_APP_PORT", "value": strconv.Itoa(port)},
		field("CF_INSTANCE_GUID", "metadata.uid"), field("INSTANCE_GUID", "metadata.uid"), field("CF_INSTANCE_INTERNAL_IP", "status.podIP"), field("CF_INSTANCE_IP", "status.hostIP"),
	}
	if p.MemoryMB > 0 {
		env = append(env, doc{"name": "MEMORY_LIMIT", "value": fmt.Sprintf("%dm", p.MemoryMB)})
	}
	if a.Stateful {
		for _, name := range []string{"CF_INSTANCE_INDEX", "INSTANCE_INDEX"} {
			env = append(env, field(name, "metadata.labels['"+podIndex+"']"))
		}
	} else {
		a.r.warn("/processes/"+p.Type, "instances of a Deployment have no CF_INSTANCE_INDEX; those of a StatefulSet do (--controller statefulset)")
	}
	if len(a.Bindings) > 0 {
		env = append(env, doc{"name": "SERVICE_BINDING_ROOT", "value": bindingRoot})
	}
	return env
}

func (a *appRendering) volumes() (all []any) {
	for i, b := range a.Bindings {
		all = append(all, doc{"name": fmt.Sprintf("binding-%d", i), "secret": doc{"secretName": a.bindingSecret(b)}})
	}
	return all
}

func (a *appRendering) mounts() (all []any) {
	for i, b := range a.Bindings {
		all = append(all, doc{"name": fmt.Sprintf("binding-%d", i), "mountPath": bindingRoot + "/" + manifest.Sanitize(b.Name), "readOnly": true})
	}
	return all
}

// Cloud Foundry's times in seconds: the start timeout, and the interval of
// checks after it.
const (
	startSeconds     = 60
	startEvery       = 2
	healthEvery      = 30
	readinessEvery   = 2
	invocationLimits = 1
)

// probes adds those of a process: that it comes up, that it lives, and that it is
// ready, which it is when it lives unless it says more.
func (p *AppProcess) probes(c doc, port int) {
	if live := probeOf(p.Health, port); live != nil {
		start := copied(live)
		start["periodSeconds"], start["failureThreshold"] = startEvery, max(cmp.Or(p.Health.Timeout, startSeconds)/startEvery, 1)
		live["periodSeconds"] = cmp.Or(p.Health.Interval, healthEvery)
		c["startupProbe"], c["livenessProbe"] = start, live
	}
	ready := p.Readiness
	if probeOf(ready, port) == nil {
		ready = p.Health
	}
	if probe := probeOf(ready, port); probe != nil {
		probe["periodSeconds"] = cmp.Or(p.Readiness.Interval, readinessEvery)
		c["readinessProbe"] = probe
	}
}

// probeOf is nil for a check of the process alone: Kubernetes sees that itself.
func probeOf(h cf.HealthCheck, port int) doc {
	probe := doc{"timeoutSeconds": cmp.Or(h.InvocationTimeout, invocationLimits)}
	switch h.Type {
	case "http":
		probe["httpGet"] = doc{"path": cmp.Or(h.Endpoint, "/"), "port": port}
	case "port":
		probe["tcpSocket"] = doc{"port": port}
	default:
		return nil
	}
	return probe
}

// routes adds what leads from outside to the Services.
func (a *appRendering) routes() {
	byHost, byPort := map[string][]AppRoute{}, map[string][]AppRoute{}
	for _, r := range a.Routes {
		if r.TCPPort != 0 {
			byPort[r.Process] = append(byPort[r.Process], r)
			continue
		}
		byHost[r.Host] = append(byHost[r.Host], r)
	}
	for _, process := range slices.Sorted(maps.Keys(byPort)) {
		a.tcp(process, byPort[process])
	}
	if len(byHost) == 0 {
		return
	}
	hosts := slices.Sorted(maps.Keys(byHost))
	meta := a.meta(a.name(""), "", "routes of app "+a.Name)
	rules := []any{}
	if a.Gateway == "" {
		for _, host := range hosts {
			paths := []any{}
			for _, r := range byHost[host] {
				backend := doc{"service": doc{"name": a.name(r.Process), "port": doc{"number": cmp.Or(r.Port, appPort)}}}
				paths = append(paths, doc{"path": cmp.Or(r.Path, "/"), "pathType": "Prefix", "backend": backend})
			}
			rules = append(rules, doc{"host": host, "http": doc{"paths": paths}})
		}
		a.r.add(Object{"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": meta, "spec": without(doc{"ingressClassName": a.Ingress, "rules": rules})})
		return
	}
	for _, host := range hosts {
		a.r.add(a.httpRoute(host, byHost[host]))
	}
}

// tcp adds the Service that takes connections at the ports of a process' TCP routes.
func (a *appRendering) tcp(process string, routes []AppRoute) {
	name := a.name(process + "-tcp")
	taken := map[int]bool{}
	list := []any{}
	for _, r := range routes {
		if taken[r.TCPPort] {
			a.r.warn("/routes", "TCP routes of several domains have port %d, and a Service has each port once: %s is left out", r.TCPPort, r.Host)
			continue
		}
		taken[r.TCPPort] = true
		list = append(list, doc{"name": fmt.Sprintf("port-%d", r.TCPPort), "port": r.TCPPort, "targetPort": cmp.Or(r.Port, appPort), "protocol": "TCP"})
	}
	a.r.add(Object{"apiVersion": "v1", "kind": "Service", "metadata": a.meta(name, process, "TCP routes of app "+a.Name),
		"spec": doc{"type": "LoadBalancer", "selector": a.labels(process), "ports": list}})
}

// httpRoute is that of one host: its rules hold for all hosts that it names.
func (a *appRendering) httpRoute(host string, routes []AppRoute) Object {
	rules := []any{}
	for _, r := range routes {
		rules = append(rules, doc{
			"matches":     []any{doc{"path": doc{"type": "PathPrefix", "value": cmp.Or(r.Path, "/")}}},
			"backendRefs": []any{doc{"name": a.name(r.Process), "port": cmp.Or(r.Port, appPort)}},
		})
	}
	name := a.name(strings.ReplaceAll(strings.ReplaceAll(host, "*", "wildcard"), ".", "-"))
	return Object{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": a.meta(name, "", "route "+host+" of app "+a.Name),
		"spec": doc{"parentRefs": []any{doc{"name": a.Gateway}}, "hostnames": []any{host}, "rules": rules}}
}
