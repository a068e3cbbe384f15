package api

import (
	"time"

	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/change"
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

func createBuild(c *call) (*response, error) {
	var req apps.NewBuild
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	b, err := apps.Stage(c.Session, req)
	if err != nil {
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
