// Package apps has the commands about one app: its features, and the app as
// Kubernetes objects or as an image.
package apps

import (
	"cupola/cmd/cupola/command"
	"cupola/cmd/cupola/deployment"

	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cupola/cmd/cupola/capi"
	"cupola/rootfs/reference"
	"cupola/runtime/contract"
	"cupola/server/desire"
	"cupola/server/kube"
	"cupola/store/cf"
)

// Cmd is cupola app.
type Cmd struct {
	Render renderCmd `cmd:"" help:"Export a pushed app as Kubernetes objects."`
	Why    whyCmd    `cmd:"" help:"Explain why an app's instances do not run."`
}

type renderCmd struct {
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
func (c *renderCmd) Run(e *command.Env) error {
	if c.Image != "" {
		if _, err := reference.Parse("docker://" + c.Image); err != nil {
			return fmt.Errorf("--image: %w", err)
		}
	}
	api, path, err := c.find(e.Ctx)
	if err != nil {
		return err
	}
	r := appReader{Client: api, path: strings.TrimSuffix(path, "/features"), app: kube.App{Name: c.App, Image: c.Image}, pushes: c.Registry != ""}
	if err := r.read(e.Ctx); err != nil {
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
		fmt.Fprintf(e.Err, "warning %s\n", command.Printable(w.String()))
	}
	h := kube.Header{Version: command.BuildVersion(), Source: "app " + c.App, Target: c.Output, Secrets: c.WithSecrets}
	return deployment.WriteObjects(e, c.Output, h, objects)
}

// appReader reads an app from the API.
type appReader struct {
	*capi.Client
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
	if err := r.Call(ctx, "GET", r.path, nil, &app); err != nil {
		return fmt.Errorf("get the app: %w", err)
	}
	if app.Relationships.Current.Data == nil {
		return fmt.Errorf("app %s has no droplet: push it first", r.app.Name)
	}
	if err := r.Call(ctx, "GET", "/v3/droplets/"+app.Relationships.Current.Data.GUID, nil, &r.droplet); err != nil {
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
	all, err := capi.List[struct{ Name string }](ctx, r.Client, r.path+"/tasks")
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
	if err := r.Call(ctx, "GET", r.path+"/env", nil, &env); err != nil {
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

// appCheck is a process's health check as the API shows it.
type appCheck struct {
	Type string
	Data cf.HealthCheck
}

func (h appCheck) check() cf.HealthCheck {
	h.Data.Type = h.Type
	return h.Data
}

// processes reads the processes. Those of an app that is an image have a command
// only where the user named one.
func (r *appReader) processes(ctx context.Context, own bool) error {
	all, err := capi.List[struct{ GUID string }](ctx, r.Client, r.path+"/processes")
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
		if err := r.Call(ctx, "GET", "/v3/processes/"+one.GUID, nil, &p); err != nil {
			return fmt.Errorf("get a process: %w", err)
		}
		switch found := r.droplet.ProcessTypes[p.Type]; {
		case own && p.Command == found: // the image's own, which is not a shell's
			p.Command = ""
		case p.Command == "" && !own:
			p.Command = found
		}
		if p.User == "vcap" && !own {
			p.User = ""
		}
		sidecars, err := r.sidecars(ctx, one.GUID)
		if err != nil {
			return err
		}
		r.app.Processes = append(r.app.Processes, kube.AppProcess{Type: p.Type, Command: p.Command, User: p.User, Instances: p.Instances, MemoryMB: p.MemoryMB, DiskMB: p.DiskMB,
			Health: p.Health.check(), Readiness: p.Readiness.check(), Sidecars: sidecars})
	}
	return nil
}

// sidecars reads those of a process.
func (r *appReader) sidecars(ctx context.Context, process string) ([]cf.Sidecar, error) {
	all, err := capi.List[cf.Sidecar](ctx, r.Client, "/v3/processes/"+process+"/sidecars")
	if err != nil {
		return nil, fmt.Errorf("list a process' sidecars: %w", err)
	}
	return all, nil
}

func (r *appReader) routes(ctx context.Context) error {
	type destination struct {
		App struct {
			GUID    string
			Process struct{ Type string }
		}
		Port *int
	}
	all, err := capi.List[struct {
		URL, Path    string
		Port         int // of a TCP route
		Destinations []destination
	}](ctx, r.Client, r.path+"/routes")
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
