package manifests

import (
	"errors"
	"slices"

	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/services"
	"cupola/server/desire"
	"cupola/server/manifest"
	"cupola/store"
	"cupola/store/cf"
)

// forApp adds the app's name to the error of a request that cannot be processed, or that
// names what is not there (CC: SpaceApplyManifestActionJob).
func forApp(name string, err error) error {
	e, ok := errors.AsType[*cf.Error](err)
	switch {
	case !ok:
	case e.Kind == cf.UnprocessableEntity, e.Kind == cf.FeatureDisabled:
		return cf.Unprocessable("For application '%s': %s", name, e.Detail)
	case e.Kind == cf.ResourceNotFound:
		return cf.Errorf(e.Kind, "For application '%s': %s", name, e.Detail)
	}
	return err
}

// Apply changes an app to what its entry of a manifest says, in Cloud Controller's order
// (CC: actions/app_apply_manifest.rb).
func Apply(c *control.Session, app *cf.App, m *manifest.App) error {
	return apply(c, app, m, applyFeatures, applyProcesses, scaleProcesses, applySidecars, applyApp, applyRoutes, applyEnv, applyServices, applyJobs)
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

// lifecycleOf is what an entry says of an app's lifecycle; nil for nothing.
func lifecycleOf(m *manifest.App) *apps.Lifecycle {
	if m.Lifecycle == nil && !m.Docker && !m.BuildpackSet && !m.CredentialsSet && m.Stack == nil {
		return nil
	}
	r := &apps.Lifecycle{}
	if m.Lifecycle != nil {
		r.Type = *m.Lifecycle
	}
	if m.Docker && m.Lifecycle == nil {
		r.Type = cf.LifecycleDocker
	}
	if m.BuildpackSet {
		r.Data.Buildpacks = change.To(m.Buildpacks)
	}
	if m.CredentialsSet {
		r.Data.Credentials = change.To(m.Credentials)
	}
	if m.Stack != nil {
		r.Data.Stack = change.To(*m.Stack)
	}
	return r
}

func applyFeatures(c *control.Session, app *cf.App, m *manifest.App) error {
	if len(m.Features) == 0 {
		return nil
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

// applyApp changes the lifecycle and the metadata, and records that: Cloud Controller
// does so for every manifest.
func applyApp(c *control.Session, app *cf.App, m *manifest.App) error {
	meta := &change.Metadata{Labels: m.Labels, Annotations: m.Annotations}
	if err := meta.Apply(&app.Metadata); err != nil {
		return err
	}
	if err := apps.ChangeLifecycle(c, app, lifecycleOf(m)); err != nil {
		return err
	}
	if err := apps.Save(c, app); err != nil {
		return err
	}
	return c.AuditApp(audit.AppUpdate, app, c.Request(requestOf(m)))
}

// applyEnv changes the variables, and records that, as applyApp does.
func applyEnv(c *control.Session, app *cf.App, m *manifest.App) error {
	p := map[string]*any{}
	for k, v := range m.Env {
		p[k] = &v
	}
	var err error
	if app.Env, err = apps.PatchEnv(app.Env, p); err != nil {
		return err
	}
	if len(p) > 0 {
		if err := apps.Save(c, app); err != nil {
			return err
		}
	}
	return apps.EnvChanged(c, app)
}

// applyProcesses adds the processes that the app lacks and changes all but how much
// they have. A web process of which the manifest says nothing else is passed over.
func applyProcesses(c *control.Session, app *cf.App, m *manifest.App) error {
	for _, want := range m.Processes {
		if update := updateOf(want); len(update) > 1 || want.Type != "web" {
			if err := applyProcess(c, app, want, update); err != nil {
				return err
			}
		}
	}
	return nil
}

func applyProcess(c *control.Session, app *cf.App, m manifest.Process, request audit.Data) error {
	p, err := apps.Process(c, app, m.Type)
	if store.IsNotFound(err) {
		p, err = apps.AddProcess(c, app, m.Type)
	}
	if err == nil {
		err = apps.MayChange(c, p, app, apps.NoUpdate)
	}
	if err != nil {
		return err
	}
	if m.Command != nil {
		p.Command = *m.Command
	}
	if m.User != nil {
		if err := apps.SetUser(p, *m.User); err != nil {
			return err
		}
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
	return apps.ProcessUpdated(c, app, p, request)
}

// scaleProcesses changes how much the processes have. Cloud Controller records that of
// every process that the manifest lists, also where it says nothing of it.
func scaleProcesses(c *control.Session, app *cf.App, m *manifest.App) error {
	for _, want := range m.Processes {
		s := apps.Scale{Instances: given(want.Instances), MemoryMB: given(want.MemoryMB), DiskMB: given(want.DiskMB), LogRateLimit: given(want.LogRate)}
		request := scaleOf(want)
		if len(request) == 0 && !want.Listed {
			continue
		}
		p, err := apps.Process(c, app, want.Type)
		if err != nil {
			return err
		}
		if err := apps.ScaleAs(c, app, p, s, request); err != nil {
			return err
		}
	}
	return nil
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
	return change.To(*v)
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
		if err = apps.BuildpacksExist(c, lifecycleOf(m), m.Buildpacks); err == nil {
			err = apps.InsertSkeleton(c, app, lifecycleOf(m), request)
		}
	}
	if err == nil {
		err = suits(app, m)
	}
	return app, forApp(m.Name, err)
}

// suits refuses an entry for an app of the other lifecycle (CC:
// SpaceManifestsController.apply_manifest).
func suits(app *cf.App, m *manifest.App) error {
	switch key := m.Buildpack(); {
	case app.Lifecycle.Type == cf.LifecycleDocker && key != "":
		return cf.Unprocessable("%s cannot be configured for a docker lifecycle app.", key)
	case app.Lifecycle.Type == cf.LifecycleBuildpack && m.Docker:
		return cf.Unprocessable("Docker cannot be configured for a buildpack lifecycle app.")
	}
	return nil
}

// recordApply records that a manifest is applied to an app.
func recordApply(c *control.Session, app *cf.App, m *manifest.App) error {
	text, err := m.Audited(audit.Hidden, desire.Redact)
	if err != nil {
		return err
	}
	return c.AuditApp(audit.AppApplyManifest, app, c.Request(audit.Data{"manifest": text}))
}
