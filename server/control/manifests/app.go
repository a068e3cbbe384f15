package manifests

import (
	"errors"
	"slices"

	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/quota"
	"cupola/server/control/services"
	"cupola/server/desire"
	"cupola/server/manifest"
	"cupola/store"
	"cupola/store/cf"
)

// forApp has a 422 name the app that it is about.
func forApp(name string, err error) error {
	var e *cf.Error
	if errors.As(err, &e) && (e.Kind == cf.UnprocessableEntity || e.Kind == cf.FeatureDisabled) {
		return cf.Unprocessable("For application '%s': %s", name, e.Detail)
	}
	return err
}

// Apply changes an app to what its entry of a manifest says.
func Apply(c *control.Session, app *cf.App, m *manifest.App) error {
	return apply(c, app, m, applyLifecycle, applyAttributes, applyProcesses, applySidecars, recordUpdate, applyRoutes, recordEnv, applyServices)
}

// apply takes steps of a manifest's entry.
func apply(c *control.Session, app *cf.App, m *manifest.App, steps ...func(*control.Session, *cf.App, *manifest.App) error) error {
	c.Manifest = true
	defer func() { c.Manifest = false }()
	for _, step := range steps {
		if err := step(c, app, m); err != nil {
			return forApp(app.Name, err)
		}
	}
	return nil
}

func applyLifecycle(c *control.Session, app *cf.App, m *manifest.App) error {
	return apps.ChangeLifecycle(c, app, lifecycleOf(m))
}

// lifecycleOf is what an entry says of an app's lifecycle; nil for nothing.
func lifecycleOf(m *manifest.App) *apps.Lifecycle {
	if m.Lifecycle == nil && !m.Docker && !m.BuildpackSet && !m.CredentialsSet && m.Stack == nil {
		return nil
	}
	r := &apps.Lifecycle{}
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

func applyAttributes(c *control.Session, app *cf.App, m *manifest.App) error {
	p := map[string]*any{}
	for k, v := range m.Env {
		p[k] = &v
	}
	var err error
	if app.Env, err = apps.PatchEnv(app.Env, p); err != nil {
		return err
	}
	meta := &change.Metadata{Labels: m.Labels, Annotations: m.Annotations}
	if err := meta.Apply(&app.Metadata); err != nil {
		return err
	}
	form := app.BindingForm
	if err := apps.SetFeatures(app, m.Features); err != nil {
		return err
	}
	if err := services.FormFits(c, app, form); err != nil {
		return err
	}
	return apps.Save(c, app)
}

func applyProcesses(c *control.Session, app *cf.App, m *manifest.App) error {
	change := func() error {
		for _, want := range m.Processes {
			if err := applyProcess(c, app, want); err != nil {
				return err
			}
		}
		return nil
	}
	if app.State != cf.Started || len(m.Processes) == 0 { // it uses nothing of a quota
		return change()
	}
	return quota.Within(c, app.SpaceGUID, quota.Processes, change)
}

func applyProcess(c *control.Session, app *cf.App, m manifest.Process) error {
	p, err := apps.Process(c, app, m.Type)
	if store.IsNotFound(err) {
		p, err = apps.AddProcess(c, app, m.Type)
	}
	if err == nil && m != (manifest.Process{Type: m.Type, Listed: m.Listed}) {
		err = apps.MayChange(c, p, app, apps.NoUpdate)
	}
	if err != nil {
		return err
	}
	if m.Command != nil {
		p.Command = *m.Command
	}
	s := apps.Scale{Instances: given(m.Instances), MemoryMB: given(m.MemoryMB), DiskMB: given(m.DiskMB), LogRateLimit: given(m.LogRate)}
	if err := s.Apply(p); err != nil {
		return err
	}
	if err := checkRequest(m.Health).Apply(&p.HealthCheck, "Health check"); err != nil {
		return err
	}
	if err := checkRequest(m.Readiness).Apply(&p.ReadinessCheck, "Readiness health check"); err != nil {
		return err
	}
	if err := store.Processes.Update(c.Tx, p); err != nil {
		return err
	}
	return recordProcess(c, app, p, m)
}

func checkRequest(m manifest.Check) *apps.Check {
	r := &apps.Check{Type: given(m.Type)}
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
func applySidecars(c *control.Session, app *cf.App, m *manifest.App) error {
	if len(m.Sidecars) == 0 {
		return nil
	}
	processes, err := store.Processes.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return err
	}
	for _, s := range m.Sidecars {
		s.GUID, s.Origin = control.NewGUID(), "user"
		applySidecar(processes, s)
	}
	for _, p := range processes {
		if err := control.OrElse(apps.SidecarFaults(p), store.Processes.Update(c.Tx, p)); err != nil {
			return err
		}
	}
	return nil
}

// applySidecar gives a sidecar to the processes of its types in place of one of
// its name, whose GUID and origin it takes.
func applySidecar(processes []*cf.Process, s cf.Sidecar) {
	named := func(have cf.Sidecar) bool { return have.Name == s.Name }
	for _, p := range processes {
		if i := slices.IndexFunc(p.Sidecars, named); i >= 0 {
			s.GUID, s.Origin = p.Sidecars[i].GUID, p.Sidecars[i].Origin
		}
	}
	for _, p := range processes {
		p.Sidecars = control.Without(p.Sidecars, named)
		if slices.Contains(s.ProcessTypes, p.Type) {
			p.Sidecars = append(p.Sidecars, s)
		}
	}
}

// findOrCreate finds an entry's app or creates it, as it is before anything else
// is applied.
func findOrCreate(c *control.Session, space *cf.Space, m *manifest.App) (*cf.App, error) {
	app, err := store.Apps.First(c.Tx, store.Query{Where: map[string][]string{"names": {m.Name}, "space_guids": {space.GUID}}})
	if store.IsNotFound(err) {
		app = &cf.App{Name: m.Name, SpaceGUID: space.GUID}
		request := requestOf(m)
		request["name"], request["relationships"] = m.Name, audit.Data{"space": audit.Relation(space.GUID)}
		if err = apps.BuildpacksExist(c, m.Buildpacks); err == nil {
			err = apps.Insert(c, app, lifecycleOf(m), request)
		}
	}
	if err != nil {
		return nil, forApp(m.Name, err)
	}
	text, err := m.Audited(audit.Hidden, desire.Redact)
	if err != nil {
		return nil, err
	}
	return app, c.AuditApp(audit.AppApplyManifest, app, c.Request(audit.Data{"manifest": text}))
}
