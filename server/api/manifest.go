package api

import (
	"errors"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/server/control/quota"
	"cupola/server/control/services"
	"cupola/server/manifest"
	"cupola/store"
	"cupola/store/cf"
)

// readManifest reads the body of a request as a manifest.
func (c *call) readManifest() (*manifest.Manifest, error) {
	kind, _, _ := mime.ParseMediaType(c.Request.Header.Get("Content-Type"))
	if !slices.Contains([]string{"application/x-yaml", "application/yaml", "text/yaml", "text/x-yaml", "application/vnd.yaml"}, kind) {
		return nil, cf.Errorf(cf.BadRequest, "Bad request: Content-Type must be yaml")
	}
	text, err := readBody(c.Request, manifest.MaxBytes)
	if control.IsKind(err, cf.RequestTooLarge) {
		return nil, cf.Errorf(cf.BadRequest, "Bad request: Manifest size is too large. The maximum supported size is 1MB.")
	}
	if err != nil {
		return nil, err
	}
	m, err := manifest.Parse(text)
	var faults manifest.Invalid
	switch {
	case errors.As(err, &faults):
		return nil, invalidManifest(faults)
	case errors.Is(err, manifest.ErrAliases), errors.Is(err, manifest.ErrLarge):
		return nil, cf.Errorf(cf.BadRequest, "%s", err)
	case err != nil:
		return nil, cf.Errorf(cf.MessageParseError, "%s", err)
	}
	return m, nil
}

func invalidManifest(faults manifest.Invalid) error {
	var many cf.Errors
	for _, f := range faults {
		many = append(many, cf.Unprocessable("%s", f))
	}
	return many
}

// forApp has a 422 name the app that it is about.
func forApp(name string, err error) error {
	var e *cf.Error
	if errors.As(err, &e) && (e.Kind == cf.UnprocessableEntity || e.Kind == cf.FeatureDisabled) {
		return cf.Unprocessable("For application '%s': %s", name, e.Detail)
	}
	return err
}

// applyApp changes an app to what its entry of a manifest says.
func (c *call) applyApp(app *cf.App, m *manifest.App) error {
	steps := []func(*cf.App, *manifest.App) error{c.applyLifecycleOf, c.applyAttributes, c.applyProcesses, c.applySidecars, c.applyRoutes, c.applyServices}
	if m.Continues() {
		steps = steps[4:]
	}
	for _, step := range steps {
		if err := step(app, m); err != nil {
			return forApp(app.Name, err)
		}
	}
	return nil
}

func (c *call) applyLifecycleOf(app *cf.App, m *manifest.App) error {
	return c.changeLifecycle(app, lifecycleOf(m))
}

func lifecycleOf(m *manifest.App) *lifecycleRequest {
	r := &lifecycleRequest{}
	if m.Lifecycle != nil {
		r.Type = *m.Lifecycle
	}
	if m.Docker {
		r.Type = cf.LifecycleDocker
	}
	if m.BuildpackSet {
		r.Data.Buildpacks = change.Field[[]string]{Set: true, V: m.Buildpacks}
	}
	if m.CredentialsSet {
		r.Data.Credentials = change.Field[map[string]any]{Set: true, V: m.Credentials}
	}
	if m.Stack != nil {
		r.Data.Stack = change.Field[string]{Set: true, V: *m.Stack}
	}
	return r
}

func (c *call) applyAttributes(app *cf.App, m *manifest.App) error {
	p := map[string]*any{}
	for k, v := range m.Env {
		p[k] = &v
	}
	var err error
	if app.Env, err = patchEnv(app.Env, p); err != nil {
		return err
	}
	meta := &change.Metadata{Labels: m.Labels, Annotations: m.Annotations}
	if err := meta.Apply(&app.Metadata); err != nil {
		return err
	}
	form := app.BindingForm
	if err := setFeatures(app, m.Features); err != nil {
		return err
	}
	if err := services.FormFits(c.Session, app, form); err != nil {
		return err
	}
	return c.saveApp(app)
}

func (c *call) applyProcesses(app *cf.App, m *manifest.App) error {
	change := func() error {
		for _, want := range m.Processes {
			if err := c.applyProcess(app, want); err != nil {
				return err
			}
		}
		return nil
	}
	if app.State != cf.Started || len(m.Processes) == 0 { // it uses nothing of a quota
		return change()
	}
	return quota.Within(c.Tx, app.SpaceGUID, quota.Processes, change)
}

func (c *call) applyProcess(app *cf.App, m manifest.Process) error {
	p, err := c.processOf(app, m.Type)
	if store.IsNotFound(err) {
		p, err = c.addProcess(app, m.Type)
	}
	if err != nil {
		return err
	}
	if m != (manifest.Process{Type: m.Type}) {
		if err := c.mayChange(p, app, noUpdate); err != nil {
			return err
		}
	}
	if m.Command != nil {
		p.Command = *m.Command
	}
	s := scaleRequest{Instances: given(m.Instances), MemoryMB: given(m.MemoryMB), DiskMB: given(m.DiskMB), LogRateLimit: given(m.LogRate)}
	if err := s.apply(p); err != nil {
		return err
	}
	if err := checkRequest(m.Health).apply(&p.HealthCheck, "Health check"); err != nil {
		return err
	}
	if err := checkRequest(m.Readiness).apply(&p.ReadinessCheck, "Readiness health check"); err != nil {
		return err
	}
	return store.Processes.Update(c.Tx, p)
}

func checkRequest(m manifest.Check) *healthCheckRequest {
	r := &healthCheckRequest{Type: given(m.Type)}
	r.Data.Endpoint, r.Data.Timeout = given(m.Endpoint), given(m.Timeout)
	r.Data.InvocationTimeout, r.Data.Interval = given(m.InvocationTimeout), given(m.Interval)
	return r
}

func given[T any](v *T) change.Field[T] {
	if v == nil {
		return change.Field[T]{}
	}
	return change.Field[T]{Set: true, V: *v}
}

// applySidecars sets the sidecars that the manifest names on the processes of
// their types.
func (c *call) applySidecars(app *cf.App, m *manifest.App) error {
	if len(m.Sidecars) == 0 {
		return nil
	}
	processes, err := store.Processes.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return err
	}
	for _, s := range m.Sidecars {
		applySidecar(processes, newSidecar(s))
	}
	for _, p := range processes {
		if err := control.OrElse(sidecarFaults(p), store.Processes.Update(c.Tx, p)); err != nil {
			return err
		}
	}
	return nil
}

// applySidecar gives a sidecar to the processes of its types in place of one of
// its name, whose GUID it takes.
func applySidecar(processes []*cf.Process, s cf.Sidecar) {
	named := func(have cf.Sidecar) bool { return have.Name == s.Name }
	for _, p := range processes {
		if i := slices.IndexFunc(p.Sidecars, named); i >= 0 {
			s.GUID = p.Sidecars[i].GUID
		}
	}
	for _, p := range processes {
		p.Sidecars = control.Without(p.Sidecars, named)
		if slices.Contains(s.ProcessTypes, p.Type) {
			p.Sidecars = append(p.Sidecars, s)
		}
	}
}

// diffManifest tells what applying a manifest would change.
func diffManifest(c *call) (*response, error) {
	m, err := c.readManifest()
	if err != nil {
		return nil, err
	}
	space, err := c.space()
	if err != nil {
		return nil, err
	}
	if err := c.manifestOptions(m); err != nil {
		return nil, err
	}
	current := map[string]map[string]any{}
	for _, a := range m.Apps {
		app, err := store.Apps.First(c.Tx, store.Query{Where: map[string][]string{"names": {a.Name}, "space_guids": {space.GUID}}})
		if store.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if current[a.Name], err = c.manifestOf(app, true); err != nil {
			return nil, err
		}
	}
	changes := manifest.Diff(m, func(name string) (map[string]any, bool) {
		v, ok := current[name]
		return v, ok
	})
	return &response{status: http.StatusCreated, body: doc{"diff": changes}}, nil
}

// showManifest writes the manifest of an app.
func showManifest(c *call) (*response, error) {
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	m, err := c.manifestOf(app, false)
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(doc{"applications": []any{m}})
	if err != nil {
		return nil, err
	}
	return &response{raw: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-yaml; charset=utf-8")
		w.Write(append([]byte("---\n"), text...))
	}}, nil
}

// routeURL splits a route's URL into what may be its host, domain and path:
// every split in turn, longest domain first. The port is 0 for none, -1 for one
// that is none.
func routeURL(url string) (names []string, port int, path string) {
	_, rest, found := strings.Cut(url, "://")
	if !found {
		rest = url
	}
	name, path, _ := strings.Cut(rest, "/")
	if path != "" {
		path = "/" + path
	}
	name, portText, _ := strings.Cut(strings.ToLower(name), ":")
	if portText != "" {
		n, err := strconv.ParseUint(portText, 10, 16)
		if port = int(n); err != nil {
			port = -1
		}
	}
	for {
		names = append(names, name)
		_, tail, more := strings.Cut(name, ".")
		if !more {
			return names, port, path
		}
		name = tail
	}
}
