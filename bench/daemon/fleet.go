package daemon

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Fleet is a growing number of apps with the same droplet.
type Fleet struct {
	*Client
	space, droplet string
	guids          []string // of the apps
}

// NewFleet pushes the app in dir.
func NewFleet(ctx context.Context, d *Daemon, dir string) (*Fleet, error) {
	if err := d.Push(ctx, d.URL(), dir, "idle-0"); err != nil {
		return nil, err
	}
	c, err := d.Login(ctx)
	if err != nil {
		return nil, err
	}
	f := &Fleet{Client: c}
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
	f.guids = []string{app}
	return f, f.scale(ctx, app)
}

type doc = map[string]any

func to(guid string) doc { return doc{"data": doc{"guid": guid}} }

// scale gives the app 16 MB, and starts it with them.
func (f *Fleet) scale(ctx context.Context, app string) error {
	if err := f.Call(ctx, http.MethodPost, "/v3/apps/"+app+"/processes/web/actions/scale", doc{"memory_in_mb": 16, "disk_in_mb": 64}, nil); err != nil {
		return err
	}
	return f.Call(ctx, http.MethodPost, "/v3/apps/"+app+"/actions/restart", nil, nil)
}

// Scale gives the first app so many instances, and waits until that many run, and no other.
func (f *Fleet) Scale(ctx context.Context, count int) error {
	app := f.guids[0]
	if err := f.Call(ctx, http.MethodPost, "/v3/apps/"+app+"/processes/web/actions/scale", doc{"instances": count}, nil); err != nil {
		return err
	}
	for {
		states, err := f.states(ctx, app)
		if err != nil {
			return err
		}
		if len(states) == count && !slices.ContainsFunc(states, func(s string) bool { return s != "RUNNING" }) {
			return nil
		}
		select { // it costs the daemon what a browser that shows the app does
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%w: %d instances", ctx.Err(), len(states))
		}
	}
}

// Grow adds apps until there are count, and waits until all run.
func (f *Fleet) Grow(ctx context.Context, count int) error {
	for len(f.guids) < count {
		if err := f.add(ctx, fmt.Sprintf("idle-%d", len(f.guids))); err != nil {
			return err
		}
	}
	return f.Await(ctx, "RUNNING")
}

// Await waits until the instance of each app has a state.
func (f *Fleet) Await(ctx context.Context, state string) error {
	for _, app := range f.guids {
		if err := f.await(ctx, app, state); err != nil {
			return err
		}
	}
	return nil
}

// Route gives each app the route of its name; the first has its own.
func (f *Fleet) Route(ctx context.Context) error {
	domain, err := f.GUID(ctx, "/v3/domains?names=localhost")
	if err != nil {
		return err
	}
	for n, app := range f.guids[1:] {
		var route struct{ GUID string }
		where := doc{"space": to(f.space), "domain": to(domain)}
		if err := f.Call(ctx, http.MethodPost, "/v3/routes", doc{"host": fmt.Sprintf("idle-%d", n+1), "relationships": where}, &route); err != nil {
			return err
		}
		if err := f.Call(ctx, http.MethodPost, "/v3/routes/"+route.GUID+"/destinations", doc{"destinations": []doc{{"app": doc{"guid": app}}}}, nil); err != nil {
			return err
		}
	}
	return nil
}

// Label sets a label of each app.
func (f *Fleet) Label(ctx context.Context, name, value string) error {
	for _, app := range f.guids {
		if err := f.Call(ctx, http.MethodPatch, "/v3/apps/"+app, doc{"metadata": doc{"labels": doc{name: value}}}, nil); err != nil {
			return err
		}
	}
	return nil
}

// MemoryBytes is what all instances use.
func (f *Fleet) MemoryBytes(ctx context.Context) (sum int64, err error) {
	for _, app := range f.guids {
		var stats struct {
			Resources []struct{ Usage struct{ Mem int64 } }
		}
		if err := f.Call(ctx, http.MethodGet, "/v3/apps/"+app+"/processes/web/stats", nil, &stats); err != nil {
			return 0, err
		}
		for _, i := range stats.Resources {
			sum += i.Usage.Mem
		}
	}
	return sum, nil
}

func (f *Fleet) add(ctx context.Context, name string) error {
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
	f.guids = append(f.guids, app.GUID)
	return f.scale(ctx, app.GUID)
}

// await waits until the app's instance has a state.
func (f *Fleet) await(ctx context.Context, app, state string) error {
	for {
		states, err := f.states(ctx, app)
		if err != nil {
			return err
		}
		if len(states) == 1 && states[0] == state {
			return nil
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("%w: instances %v", err, states)
		}
	}
}

// states are those of the app's instances.
func (f *Fleet) states(ctx context.Context, app string) (all []string, err error) {
	var stats struct{ Resources []struct{ State string } }
	err = f.Call(ctx, http.MethodGet, "/v3/apps/"+app+"/processes/web/stats", nil, &stats)
	for _, i := range stats.Resources {
		all = append(all, i.State)
	}
	return all, err
}

func pause(ctx context.Context) error {
	select {
	case <-time.After(20 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
