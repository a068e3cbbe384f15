package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"cupola/bench/daemon"
)

// fleet is a growing number of apps with the same droplet.
type fleet struct {
	*daemon.Client
	space, droplet string
	count          int
}

func newFleet(ctx context.Context, d *daemon.Daemon, dir string) (*fleet, error) {
	if err := d.Push(ctx, d.URL(), dir, "idle-0"); err != nil {
		return nil, err
	}
	c, err := d.Login(ctx)
	if err != nil {
		return nil, err
	}
	f := &fleet{Client: c, count: 1}
	if f.space, err = c.GUID(ctx, "/v3/spaces?names=dev"); err != nil {
		return nil, err
	}
	app, err := c.GUID(ctx, "/v3/apps?names=idle-0")
	if err != nil {
		return nil, err
	}
	if f.droplet, err = c.GUID(ctx, "/v3/apps/"+app+"/droplets"); err != nil {
		return nil, err
	}
	return f, f.scale(ctx, app)
}

type doc = map[string]any

func to(guid string) doc { return doc{"data": doc{"guid": guid}} }

// scale gives the app 16 MB, and starts it with them.
func (f *fleet) scale(ctx context.Context, app string) error {
	if err := f.Call(ctx, http.MethodPost, "/v3/apps/"+app+"/processes/web/actions/scale", doc{"memory_in_mb": 16, "disk_in_mb": 64}, nil); err != nil {
		return err
	}
	return f.Call(ctx, http.MethodPost, "/v3/apps/"+app+"/actions/restart", nil, nil)
}

// grow adds apps until there are count, and waits until all run.
func (f *fleet) grow(ctx context.Context, count int) error {
	for ; f.count < count; f.count++ {
		if err := f.add(ctx, fmt.Sprintf("idle-%d", f.count)); err != nil {
			return err
		}
	}
	for n := range count {
		app, err := f.GUID(ctx, fmt.Sprintf("/v3/apps?names=idle-%d", n))
		if err != nil {
			return err
		}
		if err := f.await(ctx, app); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) add(ctx context.Context, name string) error {
	var app, droplet struct{ GUID string }
	if err := f.Call(ctx, http.MethodPost, "/v3/apps", doc{"name": name, "relationships": doc{"space": to(f.space)}}, &app); err != nil {
		return err
	}
	if err := f.Call(ctx, http.MethodPost, "/v3/droplets?source_guid="+f.droplet, doc{"relationships": doc{"app": to(app.GUID)}}, &droplet); err != nil {
		return err
	}
	for { // the copy is a job
		var d struct{ State string }
		if err := f.Call(ctx, http.MethodGet, "/v3/droplets/"+droplet.GUID, nil, &d); err != nil {
			return err
		}
		if d.State == "STAGED" {
			break
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
	if err := f.Call(ctx, http.MethodPatch, "/v3/apps/"+app.GUID+"/relationships/current_droplet", to(droplet.GUID), nil); err != nil {
		return err
	}
	return f.scale(ctx, app.GUID)
}

// await waits until the app's instance runs.
func (f *fleet) await(ctx context.Context, app string) error {
	for {
		var stats struct{ Resources []struct{ State string } }
		if err := f.Call(ctx, http.MethodGet, "/v3/apps/"+app+"/processes/web/stats", nil, &stats); err != nil {
			return err
		}
		if len(stats.Resources) == 1 && stats.Resources[0].State == "RUNNING" {
			return nil
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("%w: instances %v", err, stats.Resources)
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-time.After(20 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
