package transfer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"cupola/cmd/cupola/capi"
)

// app is one that is copied.
type app struct {
	GUID, Name, State string

	manifest map[string]any // without the list around it
}

const started = "STARTED"

// apps are the apps to copy from a space, with their manifests.
func (c *copier) apps(ctx context.Context, space named) ([]app, error) {
	query := url.Values{"space_guids": {space.GUID}, "order_by": {"name"}}
	if len(c.App) > 0 {
		var names []string
		for _, name := range c.App {
			names = append(names, capi.Exact(name))
		}
		query.Set("names", strings.Join(names, ","))
	}
	all, err := capi.List[app](ctx, c.from, "/v3/apps?"+query.Encode())
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].manifest, err = c.manifest(ctx, all[i].GUID); err != nil {
			return nil, fmt.Errorf("read the manifest of %s: %w", all[i].Name, err)
		}
	}
	return all, nil
}

func (c *copier) manifest(ctx context.Context, guid string) (map[string]any, error) {
	body, err := c.from.Download(ctx, "/v3/apps/"+guid+"/manifest")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var m struct{ Applications []map[string]any }
	if err := yaml.NewDecoder(body).Decode(&m); err != nil {
		return nil, err
	}
	if len(m.Applications) != 1 {
		return nil, fmt.Errorf("it has %d applications; want one", len(m.Applications))
	}
	return m.Applications[0], nil
}

// app copies an app into a space in which there are services.
func (c *copier) app(ctx context.Context, a app, to place, services map[string]bool) error {
	notes, err := c.fit(ctx, a, to, services)
	if err != nil {
		return err
	}
	bits, err := c.bitsOf(ctx, a)
	if err != nil {
		return err
	}
	if c.DryRun {
		c.tell(a, "would be copied: "+bits.String(), notes)
		return nil
	}
	if err := c.apply(ctx, to.space.GUID, a.manifest); err != nil {
		return fmt.Errorf("apply its manifest: %w", err)
	}
	guid, err := c.to.First(ctx, "app "+a.Name, "/v3/apps?"+url.Values{"names": {capi.Exact(a.Name)}, "space_guids": {to.space.GUID}}.Encode())
	if err != nil {
		return err
	}
	what, err := c.put(ctx, a, guid, bits)
	if err != nil {
		return err
	}
	state, err := c.start(ctx, a, guid, bits)
	if err != nil {
		return err
	}
	c.tell(a, what+state, notes)
	return nil
}

func (c *copier) tell(a app, what string, notes []string) {
	c.show.Step(a.Name, "%s", what)
	for _, n := range notes {
		c.show.Line(n)
	}
}

// fit changes the manifest of an app into one that can be applied there. The notes are about what is lost.
func (c *copier) fit(ctx context.Context, a app, to place, services map[string]bool) (notes []string, err error) {
	m := a.manifest
	routes, notes, err := c.routes(ctx, a, to)
	if err != nil {
		return nil, err
	}
	delete(m, "routes")
	if len(routes) > 0 {
		m["routes"] = routes
	} else {
		m["no-route"] = true
	}
	bindings := slices.DeleteFunc(list(m["services"]), func(s any) bool {
		gone := !services[serviceName(s)]
		if gone {
			notes = append(notes, fmt.Sprintf("it is not bound to %s, which is not there", serviceName(s)))
		}
		return gone
	})
	if delete(m, "services"); len(bindings) > 0 {
		m["services"] = bindings
	}
	if docker, ok := m["docker"].(map[string]any); ok && docker["username"] != nil {
		delete(docker, "username")
		if c.restore == nil {
			notes = append(notes, fmt.Sprintf("its image is pulled without the credentials of %v, which cannot be read: push it there, if it needs them", docker["image"]))
		}
	}
	more, err := c.fitStack(ctx, m)
	return append(notes, more...), err
}

// fitStack leaves a stack and buildpacks out that are not there: then the defaults there are used.
func (c *copier) fitStack(ctx context.Context, m map[string]any) (notes []string, err error) {
	has := func(kind, name string) bool {
		if err != nil {
			return false
		}
		var found []named
		found, err = capi.List[named](ctx, c.to, "/v3/"+kind+"?"+capi.Filter("names", name))
		return len(found) > 0
	}
	if stack, _ := m["stack"].(string); stack != "" && !has("stacks", stack) {
		delete(m, "stack")
		notes = append(notes, fmt.Sprintf("it gets the default stack: there is no %s", stack))
	}
	packs := list(m["buildpacks"])
	if i := slices.IndexFunc(packs, func(b any) bool {
		name, _ := b.(string)
		return name != "" && !strings.Contains(name, "://") && !has("buildpacks", name)
	}); i >= 0 {
		delete(m, "buildpacks")
		notes = append(notes, fmt.Sprintf("its buildpack is detected: there is no %v", packs[i]))
	}
	return notes, err
}

// apply applies a manifest to a space there. What it says of where the app came from is added by put.
func (c *copier) apply(ctx context.Context, space string, m map[string]any) error {
	if metadata, ok := m["metadata"].(map[string]any); ok {
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			maps.DeleteFunc(annotations, func(name string, _ any) bool { return name == copied })
		}
	}
	text, err := yaml.Marshal(capi.Doc{"applications": []any{m}})
	if err != nil {
		return err
	}
	return c.to.ApplyManifest(ctx, space, text)
}

// start starts the app if its original is started, and waits until its instances run. It returns what to say about them.
func (c *copier) start(ctx context.Context, a app, guid string, b bits) (string, error) {
	if a.State != started || c.Stopped || b.kind == none {
		return ", stopped", nil
	}
	if err := c.to.Call(ctx, http.MethodPost, "/v3/apps/"+guid+"/actions/start", nil, nil); err != nil {
		return "", fmt.Errorf("start it: %w", err)
	}
	for {
		var stats struct {
			Resources []struct{ State, Details string }
		}
		if err := c.to.Call(ctx, http.MethodGet, "/v3/apps/"+guid+"/processes/web/stats", nil, &stats); err != nil {
			return "", err
		}
		count := map[string]int{}
		for _, i := range stats.Resources {
			count[i.State]++
			if i.State == "DOWN" && i.Details != "" {
				return "", fmt.Errorf("an instance cannot be placed: %s", i.Details)
			}
		}
		switch all := len(stats.Resources); {
		case all == 0 || count["RUNNING"] == all:
			return fmt.Sprintf(", %d of %d running", count["RUNNING"], all), nil
		case count["CRASHED"] > 0:
			return "", errors.New("it crashes there: see its logs")
		}
		if err := capi.Pause(ctx, 500*time.Millisecond); err != nil {
			return "", err
		}
	}
}
