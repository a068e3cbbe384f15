package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cupola/rootfs/reference"
	"cupola/runtime/contract"
	"cupola/server/desire"
	"cupola/server/kube"
)

type appCmd struct {
	Render appRenderCmd `cmd:"" help:"Export a pushed app as Kubernetes objects."`
}

type appRenderCmd struct {
	appFlags
	To          string `help:"The output format." enum:"kubernetes" default:"kubernetes"`
	Output      string `help:"Where to write: a file, a directory (one file per object), or - for standard output." default:"-" placeholder:"PATH"`
	Namespace   string `help:"Namespace of the objects; by default they have none." short:"n" placeholder:"NAME"`
	WithSecrets bool   `help:"Include the values of Secrets."`
	Image       string `help:"The image to run; by default a docker app's image." placeholder:"REFERENCE" xor:"image"`
	pushFlags
	PullSecret   string `help:"Secret with the cluster's credentials to pull the image." placeholder:"NAME"`
	Controller   string `help:"Kind of workload for a process; only instances of a statefulset know their index." enum:"deployment,statefulset" default:"deployment"`
	Gateway      string `help:"Write routes as HTTPRoutes of this Gateway, instead of an Ingress." placeholder:"NAME"`
	IngressClass string `help:"Class of the Ingress; by default the cluster's." placeholder:"NAME"`
}

// Run writes the objects of an app.
func (c *appRenderCmd) Run(e *env) error {
	if c.Image != "" {
		if _, err := reference.Parse("docker://" + c.Image); err != nil {
			return fmt.Errorf("--image: %w", err)
		}
	}
	api, path, err := c.find(e.ctx)
	if err != nil {
		return err
	}
	r := appReader{client: api, path: strings.TrimSuffix(path, "/features"), app: kube.App{Name: c.App, Image: c.Image}, pushes: c.Registry != ""}
	if err := r.read(e.ctx); err != nil {
		return err
	}
	if err := c.push(e, &r); err != nil {
		return err
	}
	objects, warnings, err := kube.RenderApp(r.app, kube.AppOptions{Namespace: c.Namespace, WithSecrets: c.WithSecrets,
		Stateful: c.Controller == "statefulset", Gateway: c.Gateway, Ingress: c.IngressClass, PullSecret: c.PullSecret})
	if err != nil {
		return err
	}
	for _, w := range warnings {
		fmt.Fprintf(e.err, "warning %s\n", strings.Map(printed, w.String()))
	}
	h := kube.Header{Version: buildVersion(), Source: "app " + c.App, Target: c.Output, Secrets: c.WithSecrets}
	return writeObjects(e, c.Output, h, objects)
}

// appReader gathers what the API tells of an app.
type appReader struct {
	*client
	path   string // of the app
	app    kube.App
	pushes bool // an image is made of its droplet

	droplet struct {
		GUID         string
		Image        string
		ProcessTypes map[string]string `json:"process_types"`
		Metadata     string            `json:"execution_metadata"`
	}
}

// port is where the app listens that a route says nothing else of: at the first
// TCP port that its image exposes; 0 for the default.
func (r *appReader) port() int {
	var metadata desire.DockerMetadata
	if err := json.Unmarshal([]byte(r.droplet.Metadata), &metadata); err != nil {
		return 0 // of a droplet that has other metadata, or none
	}
	for _, p := range metadata.Ports {
		if p.Protocol == "tcp" {
			return int(p.Port)
		}
	}
	return 0
}

func (r *appReader) read(ctx context.Context) error {
	var app struct {
		Relationships struct {
			Current struct{ Data *struct{ GUID string } } `json:"current_droplet"`
		}
	}
	if err := r.call(ctx, "GET", r.path, nil, &app); err != nil {
		return fmt.Errorf("get the app: %w", err)
	}
	if app.Relationships.Current.Data == nil {
		return fmt.Errorf("app %s has no droplet: push it first", r.app.Name)
	}
	if err := r.call(ctx, "GET", "/v3/droplets/"+app.Relationships.Current.Data.GUID, nil, &r.droplet); err != nil {
		return fmt.Errorf("get the app's droplet: %w", err)
	}
	own := r.droplet.Image != ""
	if r.app.Image == "" {
		if r.app.Image = r.droplet.Image; !own && !r.pushes {
			return fmt.Errorf("app %s has a droplet, not an image: give --registry to build and push one to a registry that the cluster can reach, or --image for an existing one", r.app.Name)
		}
	}
	if err := r.environment(ctx); err != nil {
		return err
	}
	if err := r.processes(ctx, own); err != nil {
		return err
	}
	if err := r.tasks(ctx); err != nil {
		return err
	}
	return r.routes(ctx)
}

// tasks reads the names of those that were run.
func (r *appReader) tasks(ctx context.Context) error {
	all, err := list[struct{ Name string }](ctx, r.client, r.path+"/tasks")
	if err != nil {
		return fmt.Errorf("list the app's tasks: %w", err)
	}
	for _, t := range all {
		r.app.Tasks = append(r.app.Tasks, t.Name)
	}
	return nil
}

// environment reads the variables, and the bindings that are in them.
func (r *appReader) environment(ctx context.Context) error {
	var env struct {
		Running     map[string]any             `json:"running_env_json"`
		Own         map[string]any             `json:"environment_variables"`
		System      map[string]json.RawMessage `json:"system_env_json"`
		Application map[string]json.RawMessage `json:"application_env_json"`
	}
	if err := r.call(ctx, "GET", r.path+"/env", nil, &env); err != nil {
		return fmt.Errorf("get the app's environment: %w", err)
	}
	r.app.Env = map[string]string{}
	for _, vars := range []map[string]any{env.Running, env.Own} {
		for name, value := range vars {
			r.app.Env[name] = fmt.Sprint(value)
		}
	}
	for _, vars := range []map[string]json.RawMessage{env.System, env.Application} {
		for name, value := range vars {
			r.app.Env[name] = string(value)
		}
	}
	var services map[string][]struct {
		Name, Label, Provider string
		Credentials           map[string]any
	}
	if text := env.System["VCAP_SERVICES"]; text != nil {
		if err := json.Unmarshal(text, &services); err != nil {
			return fmt.Errorf("read the app's VCAP_SERVICES: %w", err)
		}
	}
	for _, label := range slices.Sorted(maps.Keys(services)) {
		for _, s := range services[label] {
			r.app.Bindings = append(r.app.Bindings, kube.AppBinding{Name: s.Name, Type: s.Label, Provider: s.Provider, Credentials: s.Credentials})
		}
	}
	return nil
}

// appCheck is a check of a process as the API tells it.
type appCheck struct {
	Type string
	Data struct {
		Endpoint          string
		Timeout, Interval int
		InvocationTimeout int `json:"invocation_timeout"`
	}
}

func (h appCheck) check() kube.AppCheck {
	return kube.AppCheck{Type: h.Type, Endpoint: h.Data.Endpoint, TimeoutSeconds: h.Data.Timeout, InvocationSeconds: h.Data.InvocationTimeout, IntervalSeconds: h.Data.Interval}
}

// processes reads the processes. Those of an app that is an image have a command
// only where the user named one.
func (r *appReader) processes(ctx context.Context, own bool) error {
	all, err := list[struct{ GUID string }](ctx, r.client, r.path+"/processes")
	if err != nil {
		return fmt.Errorf("list the app's processes: %w", err)
	}
	for _, one := range all {
		var p struct {
			Type, Command, User string
			Instances           int
			MemoryMB            int      `json:"memory_in_mb"`
			DiskMB              int      `json:"disk_in_mb"`
			Health              appCheck `json:"health_check"`
			Readiness           appCheck `json:"readiness_health_check"`
		}
		if err := r.call(ctx, "GET", "/v3/processes/"+one.GUID, nil, &p); err != nil {
			return fmt.Errorf("get a process: %w", err)
		}
		switch found := r.droplet.ProcessTypes[p.Type]; {
		case own && p.Command == found: // the image's own, which is no shell's
			p.Command = ""
		case p.Command == "" && !own:
			p.Command = found
		}
		if p.User == "vcap" && !own {
			p.User = ""
		}
		beside, err := r.sidecars(ctx, one.GUID)
		if err != nil {
			return err
		}
		r.app.Processes = append(r.app.Processes, kube.AppProcess{Type: p.Type, Command: p.Command, User: p.User, Instances: p.Instances, MemoryMB: p.MemoryMB, DiskMB: p.DiskMB,
			Health: p.Health.check(), Readiness: p.Readiness.check(), Sidecars: beside})
	}
	return nil
}

// sidecars reads those of a process.
func (r *appReader) sidecars(ctx context.Context, process string) (beside []kube.AppSidecar, err error) {
	all, err := list[struct {
		Name, Command string
		MemoryMB      int `json:"memory_in_mb"`
	}](ctx, r.client, "/v3/processes/"+process+"/sidecars")
	if err != nil {
		return nil, fmt.Errorf("list a process' sidecars: %w", err)
	}
	for _, s := range all {
		beside = append(beside, kube.AppSidecar(s))
	}
	return beside, nil
}

func (r *appReader) routes(ctx context.Context) error {
	type destination struct {
		App struct {
			GUID    string
			Process struct{ Type string }
		}
		Port *int
	}
	all, err := list[struct {
		URL, Path    string
		Port         int // of a TCP route
		Destinations []destination
	}](ctx, r.client, r.path+"/routes")
	if err != nil {
		return fmt.Errorf("list the app's routes: %w", err)
	}
	for _, route := range all {
		for _, d := range route.Destinations {
			if !strings.HasSuffix(r.path, "/"+d.App.GUID) {
				continue
			}
			to := kube.AppRoute{Host: strings.TrimSuffix(route.URL, route.Path), Path: route.Path, Process: d.App.Process.Type, TCPPort: route.Port}
			if to.Port = r.port(); d.Port != nil && (to.Port == 0 || *d.Port != contract.DefaultPort) {
				to.Port = *d.Port
			}
			r.app.Routes = append(r.app.Routes, to)
		}
	}
	return nil
}
