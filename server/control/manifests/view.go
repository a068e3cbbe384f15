package manifests

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/desire"
	"cupola/server/manifest"
	"cupola/store"
	"cupola/store/cf"
)

// Write writes the manifest that would make an app as it is.
func Write(c *control.Session, app *cf.App) ([]byte, error) {
	m, err := of(c, app)
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(map[string]any{"applications": []any{m}})
	return append([]byte("---\n"), text...), err
}

// Diff lists what applying a manifest in a space would change.
func (m *Manifest) Diff(c *control.Session, space *cf.Space) ([]manifest.Change, error) {
	if err := check(c, m.parsed); err != nil {
		return nil, err
	}
	current := map[string]map[string]any{}
	for _, a := range m.parsed.Apps {
		app, err := store.Apps.First(c.Tx, store.Query{Where: map[string][]string{"names": {a.Name}, "space_guids": {space.GUID}}})
		if store.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		have, err := of(c, app)
		if err != nil {
			return nil, err
		}
		current[a.Name] = forDiff(have)
	}
	return manifest.Diff(m.parsed, current), nil
}

// of is the manifest that would make an app as it is.
func of(c *control.Session, app *cf.App) (map[string]any, error) {
	features := map[string]any{}
	for _, f := range apps.Features {
		features[f.Name] = f.On(app)
	}
	m := map[string]any{"name": app.Name, "lifecycle": app.Lifecycle.Type, "features": features}
	if app.Lifecycle.Stack != "" {
		m["stack"] = app.Lifecycle.Stack
	}
	if len(app.Lifecycle.Buildpacks) > 0 {
		m["buildpacks"] = anyList(app.Lifecycle.Buildpacks)
	}
	if len(app.Env) > 0 {
		m["env"] = anyMap(app.Env)
	}
	if len(app.Labels)+len(app.Annotations) > 0 {
		m["metadata"] = map[string]any{"labels": anyMap(app.Labels), "annotations": anyMap(app.Annotations)}
	}
	for _, add := range []func(*control.Session, map[string]any, *cf.App) error{addImage, addServices, addRoutes, addProcesses, addJobs} {
		if err := add(c, m, app); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// forDiff is a manifest with the keys as manifests mostly have them: those of the
// process web stand at the top, too.
func forDiff(m map[string]any) map[string]any {
	for _, p := range m["processes"].([]any) {
		entry := p.(map[string]any)
		entry["disk-quota"] = entry["disk_quota"] // as the CLI writes it
		if entry["type"] == "release" && entry["command"] != nil {
			m["release"] = entry["command"]
		}
		if entry["type"] == "web" {
			maps.Copy(m, entry)
			delete(m, "type")
		}
	}
	return m
}

// addServices names the service instances that an app is bound to.
func addServices(c *control.Session, m map[string]any, app *cf.App) error {
	bound, err := store.ServiceBindings.OfApps(c.Tx, app.GUID)
	if err != nil {
		return err
	}
	var names []string
	for _, s := range bound[app.GUID] {
		names = append(names, s.Instance.Name)
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	if names = slices.Compact(names); names != nil {
		m["services"] = anyList(names)
	}
	return nil
}

// addImage names the image of the newest package, if the app is an image.
func addImage(c *control.Session, m map[string]any, app *cf.App) error {
	if app.Lifecycle.Type != cf.LifecycleDocker {
		return nil
	}
	packages, err := store.Packages.Matching(c.Tx, store.Query{Where: map[string][]string{"app_guids": {app.GUID}}, Order: "created_at", Desc: true, Page: 1, PerPage: 1})
	if err != nil || len(packages) == 0 {
		return err
	}
	image := map[string]any{"image": packages[0].Image}
	if u := packages[0].Credential.Username; u != "" {
		image["username"] = u
	}
	m["docker"] = image
	return nil
}

func addRoutes(c *control.Session, m map[string]any, app *cf.App) error {
	routes, err := store.Routes.By(c.Tx, "app_guids", app.GUID)
	if err != nil || len(routes) == 0 {
		return err
	}
	var list []any
	for _, r := range routes {
		d, err := store.Domains.Get(c.Tx, r.DomainGUID)
		if err != nil {
			return err
		}
		protocol := "http1"
		for _, to := range r.Destinations {
			if to.AppGUID == app.GUID {
				protocol = to.Protocol
			}
		}
		entry := map[string]any{"route": desire.URI(r, d), "protocol": protocol}
		if len(r.Options) > 0 {
			entry["options"] = r.Options
		}
		list = append(list, entry)
	}
	m["routes"] = list
	return nil
}

func addProcesses(c *control.Session, m map[string]any, app *cf.App) error {
	processes, err := store.Processes.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return err
	}
	web, err := apps.WebProcesses(c, app)
	if err != nil {
		return err
	}
	list, seen := []any{}, map[string]bool{}
	for _, p := range processes {
		if p.Type == "web" && p.GUID != web[len(web)-1].GUID {
			continue // a deployment is about to remove it
		}
		list = append(list, viewProcess(p))
		for _, s := range p.Sidecars {
			if !seen[s.Name] {
				seen[s.Name] = true
				sidecars, _ := m["sidecars"].([]any)
				m["sidecars"] = append(sidecars, viewSidecar(s))
			}
		}
	}
	m["processes"] = list
	return nil
}

func viewProcess(p *cf.Process) map[string]any {
	e := map[string]any{"type": p.Type, "instances": p.Instances, "memory": fmt.Sprintf("%dM", p.MemoryMB), "disk_quota": fmt.Sprintf("%dM", p.DiskMB),
		"log-rate-limit-per-second": rateText(p.LogRateLimit), "health-check-type": p.HealthCheck.Type, "readiness-health-check-type": p.ReadinessCheck.Type}
	set := func(key string, v any, zero bool) {
		if !zero {
			e[key] = v
		}
	}
	set("command", p.Command, p.Command == "")
	set("user", p.User, p.User == "")
	set("timeout", p.HealthCheck.Timeout, p.HealthCheck.Timeout == 0)
	set("health-check-http-endpoint", p.HealthCheck.Endpoint, p.HealthCheck.Endpoint == "")
	set("health-check-invocation-timeout", p.HealthCheck.InvocationTimeout, p.HealthCheck.InvocationTimeout == 0)
	set("health-check-interval", p.HealthCheck.Interval, p.HealthCheck.Interval == 0)
	set("readiness-health-check-http-endpoint", p.ReadinessCheck.Endpoint, p.ReadinessCheck.Endpoint == "")
	set("readiness-health-check-invocation-timeout", p.ReadinessCheck.InvocationTimeout, p.ReadinessCheck.InvocationTimeout == 0)
	set("readiness-health-check-interval", p.ReadinessCheck.Interval, p.ReadinessCheck.Interval == 0)
	return e
}

// rateText writes a log rate as a manifest has it: the largest whole unit.
func rateText(n int64) any {
	if n <= 0 {
		return n
	}
	for _, u := range []struct {
		name  string
		bytes int64
	}{{"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}} {
		if n%u.bytes == 0 {
			return fmt.Sprintf("%d%s", n/u.bytes, u.name)
		}
	}
	return fmt.Sprintf("%dB", n)
}

func viewSidecar(s cf.Sidecar) map[string]any {
	e := map[string]any{"name": s.Name, "command": s.Command, "process_types": anyList(s.ProcessTypes)}
	if s.MemoryMB > 0 {
		e["memory"] = fmt.Sprintf("%dM", s.MemoryMB)
	}
	return e
}

func anyList(list []string) []any {
	var out []any
	for _, v := range list {
		out = append(out, v)
	}
	return out
}

func anyMap(m map[string]string) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		out[k] = v
	}
	return out
}
