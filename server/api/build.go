package api

import (
	"fmt"
	"time"

	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

func viewBuild(c *call, b *cf.Build) doc {
	d := with(resource(b.Resource), doc{
		"created_by": doc{"guid": b.CreatedBy.GUID, "name": b.CreatedBy.Name, "email": b.CreatedBy.Name},
		"state":      b.State, "error": control.OrNil(b.Error), "lifecycle": viewLifecycle(b.Lifecycle, b.Credentials), "metadata": metadata(b.Metadata),
		"staging_memory_in_mb": b.MemoryMB, "staging_disk_in_mb": b.DiskMB, "staging_log_rate_limit_bytes_per_second": b.LogRateLimit,
		"package": doc{"guid": b.PackageGUID}, "droplet": guidOrNil(b.DropletGUID),
		"relationships": doc{"app": toOne(b.AppGUID)},
		"links": doc{
			"self": c.link("/v3/builds/%s", b.GUID),
			"app":  c.link("/v3/apps/%s", b.AppGUID),
		},
	})
	if b.DropletGUID != "" {
		d["links"].(doc)["droplet"] = c.link("/v3/droplets/%s", b.DropletGUID)
	}
	return d
}

type buildRequest struct {
	Package struct {
		GUID string `json:"guid"`
	} `json:"package"`
	Lifecycle    *apps.Lifecycle     `json:"lifecycle"`
	MemoryMB     change.Field[int]   `json:"staging_memory_in_mb"`
	DiskMB       change.Field[int]   `json:"staging_disk_in_mb"`
	LogRateLimit change.Field[int64] `json:"staging_log_rate_limit_bytes_per_second"`
	Metadata     *change.Metadata    `json:"metadata"`
}

func (r buildRequest) Validate() []string {
	return control.Must(r.MemoryMB.Or(1) > 0, "Staging memory in mb must be greater than 0",
		r.MemoryMB.V <= apps.MaxMB, fmt.Sprintf("Staging memory in mb must be less than or equal to %d", apps.MaxMB),
		r.DiskMB.Or(1) > 0, "Staging disk in mb must be greater than 0",
		r.DiskMB.V <= apps.MaxDiskMB, "disk limit exceeded",
		r.LogRateLimit.V >= -1, "Staging log rate limit bytes per second must be greater than or equal to -1")
}

func createBuild(c *call) (*response, error) {
	var req buildRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	p, app, err := apps.Stagable(c.Session, req.Package.GUID)
	if err != nil {
		return nil, err
	}
	if err := services.Fit(c.Session, app, services.OfStaging); err != nil {
		return nil, err
	}
	memoryMB, diskMB := apps.StagingSize(c.Session)
	b := &cf.Build{AppGUID: app.GUID, PackageGUID: p.GUID, State: cf.BuildStaging, Lifecycle: app.Lifecycle, Env: app.Env, Credentials: app.Credentials, CreatedBy: c.Who(),
		MemoryMB: req.MemoryMB.Or(memoryMB), DiskMB: req.DiskMB.Or(diskMB), LogRateLimit: req.LogRateLimit.Or(-1)}
	if err := apps.DockerBuild(c.Session, b, p); err != nil {
		return nil, err
	}
	if err := apps.ApplyLifecycle(c.Session, &b.Lifecycle, &b.Credentials, req.Lifecycle); err != nil {
		return nil, err
	}
	fresh, err := apps.Fresh(c.Session, app)
	if err != nil {
		return nil, err
	}
	if err := apps.StackStages(c.Session, b.Lifecycle.Stack, fresh); err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&b.Metadata); err != nil {
		return nil, err
	}
	if b.Placement, err = c.Tx.PlacementOf(app.SpaceGUID); err != nil {
		return nil, err
	}
	if err := store.Builds.Insert(c.Tx, b); err != nil {
		return nil, err
	}
	c.Note(app, "Creating build for app with guid %s", app.GUID)
	apps.WarnOfStack(c.Session, app, b.Lifecycle.Stack)
	if err := c.AuditApp(audit.AppBuildCreate, app, doc{"build_guid": b.GUID, "package_guid": p.GUID}); err != nil {
		return nil, err
	}
	return created(viewBuild(c, b))
}

// How long an answer is held for a client that waits: long enough that a push
// sees each change at once, short enough for whatever is between.
const (
	holdFor = 20 * time.Second
	// The CLI withholds log lines for 2 s and stops reading when it sees the
	// build staged: the last lines of the log need that long to be shown.
	logDelay = 2300 * time.Millisecond
)

// showBuild holds the answer to the CLI while the build is STAGING.
func showBuild(c *call) (*response, error) {
	changed, stop := c.s.Store.Watch(store.Builds.Name())
	defer stop()
	deadline := time.Now().Add(holdFor)
	for {
		var b *cf.Build
		res, err := inTx(func(c *call) (*response, error) {
			var err error
			if b, _, err = ofApp(c, store.Builds, func(b *cf.Build) string { return b.AppGUID }); err != nil {
				return nil, err
			}
			return ok(viewBuild(c, b))
		})(c)
		if err != nil || !c.fromCLI() {
			return res, err
		}
		if b.State != cf.BuildStaging {
			if c.delaysLogs() {
				c.sleep(time.Until(b.UpdatedAt.Add(logDelay)))
			}
			return res, nil
		}
		if !c.wait(changed, deadline) {
			return res, nil
		}
	}
}

// wait waits for a change, and tells whether one came before the deadline, the
// client's leaving and the daemon's end. A user who has very many answers held
// gets no more held.
func (c *call) wait(changed <-chan struct{}, deadline time.Time) bool {
	who := c.asker()
	if !c.s.held.Take(who) {
		return false
	}
	defer c.s.held.Put(who)
	t := time.NewTimer(time.Until(deadline))
	defer t.Stop()
	select {
	case <-changed:
		return true
	case <-t.C:
	case <-c.Context().Done():
	case <-c.s.stop.Done():
	}
	return false
}

func (c *call) sleep(d time.Duration) { c.wait(nil, time.Now().Add(d)) }

func listAppBuilds(c *call) (*response, error) {
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	return listRows(c, store.Builds, viewBuild, func(q *listQuery) error {
		q.Where["app_guids"] = []string{app.GUID}
		return nil
	})
}

func updateBuild(c *call) (*response, error) {
	var req struct {
		Metadata *change.Metadata `json:"metadata"`
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	b, _, err := ofApp(c, store.Builds, func(b *cf.Build) string { return b.AppGUID })
	if err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&b.Metadata); err != nil {
		return nil, err
	}
	if err := store.Builds.Update(c.Tx, b); err != nil {
		return nil, err
	}
	return ok(viewBuild(c, b))
}
