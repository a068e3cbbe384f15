package apps

import (
	"fmt"
	"strings"

	"cupola/rootfs/reference"
	"cupola/runtime/lrp"
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/services"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// Cloud Controller's defaults of a staging container (its cloud_controller.yml).
const (
	stagingMemoryMB = 1024
	stagingDiskMB   = 6144
)

// stagingSize returns the memory and disk of staging containers whose builds ask for
// none: the defaults, or half of the largest cell if that is less, so that a small
// machine can stage while apps run.
func stagingSize(c *control.Session) (memoryMB, diskMB int) {
	var largest lrp.Cell
	for _, u := range c.Platform.Cells() {
		if u.MemoryMB > largest.MemoryMB {
			largest = u.Cell
		}
	}
	return min(stagingMemoryMB, max(1, largest.MemoryMB/2)), min(stagingDiskMB, max(1, largest.DiskMB/2))
}

// dockerBuild gives the build of an image what its registry asks for.
func dockerBuild(c *control.Session, b *cf.Build, p *cf.Package) error {
	if err := lifecycleAllowed(c, b.Lifecycle); err != nil || p.Type != "docker" {
		return err
	}
	ref, err := reference.Parse(desire.ImageScheme + p.Image)
	if err != nil {
		return cf.Unprocessable("%s", err)
	}
	if p.Credential.Username != "" {
		b.Credentials = cf.Credentials{ref.Host: p.Credential}
	}
	return nil
}

// stagable returns the package that a request would stage, with its app.
func stagable(c *control.Session, guid string) (*cf.Package, *cf.App, error) {
	p, err := store.Packages.Visible(c.Tx, guid, c.Scope)
	if err != nil {
		c.Checked = true
		return nil, nil, control.Unprocessable(err, "Unable to use package. Ensure that the package exists and you have access to it.")
	}
	app, err := c.App(p.AppGUID)
	if control.IsKind(err, cf.NotAuthorized) {
		err = cf.Unprocessable("Unable to use package. Ensure that the package exists and you have access to it.")
	}
	if err != nil {
		return nil, nil, err
	}
	if p.State != cf.PackageReady {
		return nil, nil, cf.Errorf(cf.BadRequest, "Bad request: Cannot stage package whose state is not ready.")
	}
	n, err := store.Builds.Count(c.Tx, store.Query{Where: map[string][]string{"app_guids": {app.GUID}, "states": {string(cf.BuildStaging)}}})
	if err == nil && n > 0 {
		err = cf.Errorf(cf.StagingInProgress, "Only one build can be STAGING at a time per application.")
	}
	return p, app, err
}

// NewBuild is a request for a build.
type NewBuild struct {
	Package struct {
		GUID string `json:"guid"`
	} `json:"package"`
	Lifecycle    *Lifecycle          `json:"lifecycle"`
	MemoryMB     change.Field[int]   `json:"staging_memory_in_mb"`
	DiskMB       change.Field[int]   `json:"staging_disk_in_mb"`
	LogRateLimit change.Field[int64] `json:"staging_log_rate_limit_bytes_per_second"`
	Metadata     *change.Metadata    `json:"metadata"`
}

// Validate lists what is wrong with a request alone.
func (r NewBuild) Validate() []string {
	return control.Must(r.MemoryMB.Or(1) > 0, "Staging memory in mb must be greater than 0",
		r.MemoryMB.V <= maxMB, fmt.Sprintf("Staging memory in mb must be less than or equal to %d", maxMB),
		r.DiskMB.Or(1) > 0, "Staging disk in mb must be greater than 0",
		r.DiskMB.V <= maxDiskMB, "disk limit exceeded",
		r.LogRateLimit.V >= -1, "Staging log rate limit bytes per second must be greater than or equal to -1")
}

// Stage makes a build of a package, which the scheduler runs.
func Stage(c *control.Session, req NewBuild) (*cf.Build, error) {
	p, app, err := stagable(c, req.Package.GUID)
	if err != nil {
		return nil, err
	}
	if err := services.Fit(c, app, services.OfStaging); err != nil {
		return nil, err
	}
	b, err := newBuild(c, app, p, req)
	if err != nil {
		return nil, err
	}
	if b.Placement, err = c.Tx.PlacementOf(app); err != nil {
		return nil, err
	}
	if err := store.Builds.Insert(c.Tx, b); err != nil {
		return nil, err
	}
	c.Note(app, "Creating build for app with guid %s", app.GUID)
	warnOfStack(c, app, b.Lifecycle.Stack)
	return b, c.AuditApp(audit.AppBuildCreate, app, audit.Data{"build_guid": b.GUID, "package_guid": p.GUID})
}

// newBuild is the build of a package that is asked for.
func newBuild(c *control.Session, app *cf.App, p *cf.Package, req NewBuild) (*cf.Build, error) {
	memoryMB, diskMB := stagingSize(c)
	b := &cf.Build{AppGUID: app.GUID, PackageGUID: p.GUID, State: cf.BuildStaging, Lifecycle: app.Lifecycle, Env: app.Env, Credentials: app.Credentials, CreatedBy: c.Who(),
		MemoryMB: req.MemoryMB.Or(memoryMB), DiskMB: req.DiskMB.Or(diskMB), LogRateLimit: req.LogRateLimit.Or(-1)}
	if err := dockerBuild(c, b, p); err != nil {
		return nil, err
	}
	if err := applyLifecycle(c, &b.Lifecycle, &b.Credentials, req.Lifecycle); err != nil {
		return nil, err
	}
	if err := buildpacksStage(c, b.Lifecycle); err != nil {
		return nil, err
	}
	if len(b.Lifecycle.Buildpacks) > 0 {
		b.Buildpack = desire.Redact(b.Lifecycle.Buildpacks[0])
	}
	fresh, err := neverBuilt(c, app)
	if err != nil {
		return nil, err
	}
	if err := stackStages(c, b.Lifecycle.Stack, fresh); err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&b.Metadata); err != nil {
		return nil, err
	}
	return b, nil
}

// BuildpacksExist refuses names of buildpacks that exist for no stack, or wait for
// their upload: what Cloud Controller checks before it creates an app of a
// manifest (BuildpackLifecycleBuildpackModel#validate, AppCreate#validate_buildpacks_are_ready).
func BuildpacksExist(c *control.Session, lifecycle *Lifecycle, names []string) error {
	var unknown, waiting []string
	for _, name := range names {
		if desire.IsBuildpackURLFor(typeOf(lifecycle), name) {
			continue
		}
		found, err := store.Buildpacks.By(c.Tx, "names", name)
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			unknown = append(unknown, fmt.Sprintf("Specified unknown buildpack name: %q", name))
		case found[0].State != "READY":
			waiting = append(waiting, fmt.Sprintf("%q must be in ready state", name))
		}
	}
	if len(unknown) > 0 {
		return control.Invalid(unknown)
	}
	return control.Invalid(waiting[:min(1, len(waiting))])
}

// buildpacksStage refuses a build with named buildpacks of which one is not there,
// or disabled (CC: builds_controller.rb, BuildCreate#requested_buildpacks_disabled!).
func buildpacksStage(c *control.Session, l cf.Lifecycle) error {
	if l.Type == cf.LifecycleDocker || len(l.Buildpacks) == 0 {
		return nil
	}
	if err := checkLifecycle(c, l); err != nil {
		return err
	}
	all, err := store.Buildpacks.All(c.Tx)
	if err != nil {
		return err
	}
	if disabled := desire.Disabled(l, all); len(disabled) > 0 {
		return cf.Errorf(cf.BuildpackInvalid, "Buildpack is invalid: Requested buildpack(s) '%s' are disabled and cannot be used for staging", strings.Join(disabled, "', '"))
	}
	return nil
}

// ClearBuildCache forgets what the stagings of an app left for the next one.
func ClearBuildCache(c *control.Session, app *cf.App) error {
	c.Note(app, "Enqueued job to delete app buildpack cache with app guid %s", app.GUID)
	return store.BuildCaches.ClearOf(c.Tx, app.GUID)
}
