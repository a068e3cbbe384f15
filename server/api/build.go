package api

import (
	"time"

	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

func viewBuild(c *call, b *cf.Build) doc {
	d := with(resource(b.Resource), doc{
		"created_by": doc{"guid": b.CreatedBy.GUID, "name": b.CreatedBy.Name, "email": b.CreatedBy.Name},
		"state":      b.State, "error": control.OrNil(b.Error), "lifecycle": viewLifecycle(b.Lifecycle, b.Credentials), "metadata": metadata(b.Metadata),
		"staging_memory_in_mb": b.MemoryMB, "staging_disk_in_mb": b.DiskMB, "staging_log_rate_limit_bytes_per_second": b.LogRateLimit,
		"package": doc{"guid": b.PackageGUID}, "droplet": guidOrNil(""),
		"relationships": doc{"app": toOne(b.AppGUID)},
		"links": doc{
			"self": c.link("/v3/builds/%s", b.GUID),
			"app":  c.link("/v3/apps/%s", b.AppGUID),
		},
	})
	if b.State == cf.BuildStaged && b.DropletGUID != "" {
		d["droplet"] = guidOrNil(b.DropletGUID)
		d["links"].(doc)["droplet"] = c.link("/v3/droplets/%s", b.DropletGUID)
	}
	return d
}

func buildApp(b *cf.Build) string { return b.AppGUID }

var (
	findBuild  = anApps(store.Builds, buildApp)
	labelBuild = label(store.Builds, func(b *cf.Build) *cf.Metadata { return &b.Metadata })
)

const (
	// holdFor is how long an answer is held for a client that waits: long enough that a
	// push sees each change at once, short enough for whatever is between.
	holdFor = 20 * time.Second
	// printFor is what the CLI gets to print the log lines that it has read.
	printFor = 50 * time.Millisecond
)

// showBuild holds the answer to the CLI while the build is STAGING, and until the CLI has
// read the log: it stops reading when it sees the build staged.
func showBuild(c *call) (*response, error) {
	var b *cf.Build
	res, err := hold(c, func(c *call) (res *response, done bool, err error) {
		if b, _, err = ofApp(c, store.Builds, buildApp); err != nil {
			return nil, false, err
		}
		return &response{body: viewBuild(c, b)}, b.State != cf.BuildStaging, nil
	})
	if err == nil && b.State != cf.BuildStaging && c.delaysLogs() {
		c.showLog(b)
	}
	return res, err
}

// showLog waits until the CLI has shown the staging log of a build.
func (c *call) showLog(b *cf.Build) {
	if c.s.LogShown != nil && c.s.LogShown(c.Context(), b.AppGUID, b.CreatedAt) {
		c.wait(nil, time.Now().Add(printFor))
	}
}
