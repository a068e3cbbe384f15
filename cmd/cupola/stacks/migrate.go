package stacks

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/store/cf"
)

type migrateCmd struct {
	capi.Flags
	From     string        `help:"The old stack: its name, or an image as apps name it." required:"" placeholder:"STACK"`
	To       string        `help:"The new stack: its name, or docker://host/namespace/name:tag." required:"" placeholder:"STACK"`
	Org      string        `help:"Only the apps of this org." short:"o"`
	Space    string        `help:"Only the apps of the spaces of this name." short:"s"`
	DryRun   bool          `help:"List the apps without changing anything."`
	Parallel int           `help:"Number of apps to move at a time." default:"2"`
	Timeout  time.Duration `help:"Maximum time for an app's new instances to start; after that the app returns to the old stack." default:"10m"`
	credentialFlags
}

// Run migrates apps. It keeps no record: an app is on its way when its stack is
// the new one and its droplet was made on the old one, so that the same command
// goes on where an earlier one was cut short.
func (m *migrateCmd) Run(e *command.Env) error {
	if m.From == m.To {
		return errors.New("--from and --to are the same stack")
	}
	if m.Parallel < 1 {
		return errors.New("--parallel must be 1 or more")
	}
	g := &migration{migrateCmd: m, show: command.NewReport(e)}
	var err error
	if isImage(m.To) {
		if g.credentials, err = m.forImage(m.To); err != nil {
			return err
		}
	}
	if g.client, err = m.Login(e.Ctx); err != nil {
		return err
	}
	if there, err := g.has(e.Ctx, m.To); err != nil {
		return err
	} else if !there {
		return fmt.Errorf("stack %s does not exist: 'cupola stack list' lists the stacks", m.To)
	}
	apps, err := g.find(e.Ctx)
	if err != nil {
		return err
	}
	if len(apps) == 0 {
		return g.nothing(e.Ctx)
	}
	if m.DryRun {
		return g.list(apps)
	}
	g.show.Title("Migrating %s from %s to %s.", command.Counted(len(apps), "app"), m.From, m.To)
	failed := g.all(e.Ctx, apps)
	if err := e.Ctx.Err(); err != nil {
		return errors.New("interrupted: run the same command to continue")
	}
	if failed > 0 {
		return fmt.Errorf("%s could not be migrated: run the same command to retry", command.Counted(failed, "app"))
	}
	return nil
}

// migration brings apps from one stack to another.
type migration struct {
	*migrateCmd
	client      *capi.Client
	credentials cf.Credentials // that the apps get with the new stack; nil: those that they have
	mu          sync.Mutex
	show        *command.Report
}

// migrant is an app to migrate.
type migrant struct {
	GUID, Name, State string
	Lifecycle         struct{ Data struct{ Stack string } }
	Relationships     struct {
		Space struct{ Data struct{ GUID string } }
	}
	space string // "org / space"
}

func (a migrant) String() string { return a.space + " / " + a.Name }

// find lists the apps that are on the old stack, or were left half way.
func (g *migration) find(ctx context.Context) ([]migrant, error) {
	spaces, err := g.spaces(ctx)
	if err != nil {
		return nil, err
	}
	all, err := capi.List[migrant](ctx, g.client, "/v3/apps?"+url.Values{"lifecycle_type": {"buildpack"}, "order_by": {"name"}}.Encode())
	if err != nil {
		return nil, err
	}
	var found []migrant
	for _, a := range all {
		name, within := spaces[a.Relationships.Space.Data.GUID]
		if !within {
			continue
		}
		a.space = name
		stack := a.Lifecycle.Data.Stack
		if stack == g.To {
			half, err := g.halfway(ctx, a)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", a, err)
			}
			if half {
				found = append(found, a)
			}
		}
		if stack == g.From {
			found = append(found, a)
		}
	}
	return found, nil
}

func isImage(stack string) bool { return strings.HasPrefix(stack, "docker:") }

// has reports whether a stack exists; an image is taken to.
func (g *migration) has(ctx context.Context, name string) (bool, error) {
	if isImage(name) {
		return true, nil
	}
	found, err := capi.List[struct{ GUID string }](ctx, g.client, "/v3/stacks?"+capi.Filter("names", name))
	return len(found) > 0, err
}

// nothing reports that no app is on the stack. It adds if there is no such stack: the name
// may be mistyped.
func (g *migration) nothing(ctx context.Context) error {
	there, err := g.has(ctx, g.From)
	if err != nil {
		return err
	}
	more := "."
	if !there {
		more = ", and there is no such stack."
	}
	g.show.Title("No app is on stack %s%s", g.From, more)
	return nil
}

// halfway reports whether an app with the new stack runs what was made on the
// old one, or is being deployed.
func (g *migration) halfway(ctx context.Context, a migrant) (bool, error) {
	d, err := g.droplet(ctx, a)
	if err != nil || d.Stack == g.From {
		return err == nil, err
	}
	active, err := g.active(ctx, a)
	return active != "", err
}

// spaces are the names of the spaces to look at, by GUID.
func (g *migration) spaces(ctx context.Context) (map[string]string, error) {
	type named struct {
		GUID, Name    string
		Relationships struct {
			Organization struct{ Data struct{ GUID string } }
		}
	}
	orgs, err := capi.List[named](ctx, g.client, "/v3/organizations?"+capi.Filter("names", g.Org))
	if err != nil {
		return nil, err
	}
	spaces, err := capi.List[named](ctx, g.client, "/v3/spaces?"+capi.Filter("names", g.Space))
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, s := range spaces {
		for _, o := range orgs {
			if o.GUID == s.Relationships.Organization.Data.GUID {
				found[s.GUID] = o.Name + " / " + s.Name
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("there is no %s", g.where())
	}
	return found, nil
}

// where names the spaces to look at.
func (g *migration) where() string {
	switch {
	case g.Space == "":
		return strings.TrimSuffix("space in an org "+g.Org, " in an org ")
	case g.Org == "":
		return "space " + g.Space
	}
	return fmt.Sprintf("space %s in an org %s", g.Space, g.Org)
}

func (g *migration) list(apps []migrant) error {
	g.show.Title("%s would go from %s to %s:", command.Counted(len(apps), "app"), g.From, g.To)
	for _, a := range apps {
		g.show.Step(strings.ToLower(a.State), "%s", a)
	}
	return nil
}

// all migrates the apps, several at a time, and returns how many failed.
func (g *migration) all(ctx context.Context, apps []migrant) (failed int) {
	places := make(chan struct{}, g.Parallel)
	var workers sync.WaitGroup
	for _, a := range apps {
		places <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		workers.Go(func() {
			defer func() { <-places }()
			started := time.Now()
			what, err := g.one(ctx, a)
			g.mu.Lock()
			defer g.mu.Unlock()
			if err != nil {
				failed++
				g.show.Step("failed", "%s: %v", a, err)
				return
			}
			g.show.Step(what, "%s (%.1f s)", a, time.Since(started).Seconds())
		})
	}
	workers.Wait()
	return failed
}

// one migrates an app and says what was done. When that fails, the app's next
// restage is on the old stack again.
func (g *migration) one(ctx context.Context, a migrant) (what string, err error) {
	if what, err = g.migrate(ctx, a); err == nil || ctx.Err() != nil {
		return what, err
	}
	if back := g.name(ctx, a, g.From); back != nil {
		err = fmt.Errorf("%w; and its stack could not be reverted: %w", err, back)
	}
	return "", err
}

func (g *migration) migrate(ctx context.Context, a migrant) (what string, err error) {
	if err := g.name(ctx, a, g.To); err != nil {
		return "", err
	}
	active, err := g.active(ctx, a)
	if err != nil {
		return "", err
	}
	current, err := g.droplet(ctx, a)
	switch {
	case err != nil:
		return "", err
	case current.GUID == "":
		return "renamed", nil // it was never staged
	case active != "" && current.Stack != g.From: // an earlier command's
		return "rolled", g.awaitDeployment(ctx, a, active)
	}
	if err := capi.AwaitBuilds(ctx, g.client, a.GUID); err != nil {
		return "", err
	}
	next, err := g.restage(ctx, current)
	if err != nil {
		return "", err
	}
	if a.State != "STARTED" {
		return "restaged", g.client.Call(ctx, "PATCH", "/v3/apps/"+a.GUID+"/relationships/current_droplet", capi.ToOne(next), nil)
	}
	var deployment struct{ GUID string }
	if err := g.client.Call(ctx, "POST", "/v3/deployments", capi.Doc{"strategy": "rolling", "droplet": capi.Doc{"guid": next}, "relationships": capi.Doc{"app": capi.ToOne(a.GUID)}}, &deployment); err != nil {
		return "", err
	}
	return "rolled", g.awaitDeployment(ctx, a, deployment.GUID)
}

// name sets an app's stack.
func (g *migration) name(ctx context.Context, a migrant, stack string) error {
	data := capi.Doc{"stack": stack}
	if stack == g.To && g.credentials != nil {
		data["credentials"] = g.credentials
	}
	return g.client.Call(ctx, "PATCH", "/v3/apps/"+a.GUID, capi.Doc{"lifecycle": capi.Doc{"type": "buildpack", "data": data}}, nil)
}

type droplet struct {
	GUID, Stack string
	Links       struct{ Package struct{ Href string } }
}

// droplet is an app's current one; without a GUID if it has none.
func (g *migration) droplet(ctx context.Context, a migrant) (droplet, error) {
	all, err := capi.List[droplet](ctx, g.client, "/v3/apps/"+a.GUID+"/droplets?"+url.Values{"current": {"true"}}.Encode())
	if err != nil || len(all) == 0 {
		return droplet{}, err
	}
	return all[0], nil
}

// active is an app's deployment that has not ended; "" if there is none.
func (g *migration) active(ctx context.Context, a migrant) (string, error) {
	type deployment struct{ GUID string }
	all, err := capi.List[deployment](ctx, g.client, "/v3/deployments?"+url.Values{"app_guids": {a.GUID}, "status_values": {"ACTIVE"}}.Encode())
	if err != nil || len(all) == 0 {
		return "", err
	}
	return all[0].GUID, nil
}

// restage makes a droplet of the package that another was made of.
func (g *migration) restage(ctx context.Context, of droplet) (string, error) {
	_, pkg, ok := strings.Cut(of.Links.Package.Href, "/v3/packages/")
	if !ok {
		return "", errors.New("its droplet was uploaded, so there is no package to restage: push it")
	}
	return capi.Stage(ctx, g.client, pkg)
}

// deployment is how far one is.
type deployment struct {
	Status struct {
		Value, Reason string
		Details       struct{ Error string }
	}
}

// awaitDeployment waits for the end of a deployment, and gives one up that takes too
// long.
func (g *migration) awaitDeployment(ctx context.Context, a migrant, guid string) error {
	limit, cancel := context.WithTimeout(ctx, g.Timeout)
	defer cancel()
	d, err := g.ended(limit, guid)
	if err != nil && ctx.Err() == nil && limit.Err() != nil {
		return g.giveUp(ctx, a, guid)
	}
	if err == nil && d.Status.Reason != "DEPLOYED" {
		err = fmt.Errorf("its deployment ended as %s", strings.ToLower(d.Status.Reason))
	}
	return err
}

func (g *migration) giveUp(ctx context.Context, a migrant, guid string) error {
	var last deployment
	_ = g.client.Call(ctx, "GET", "/v3/deployments/"+guid, nil, &last) // for its words only
	if err := g.client.Call(ctx, "POST", "/v3/deployments/"+guid+"/actions/cancel", nil, nil); err != nil {
		return fmt.Errorf("its new instances were not ready after %s, and the deployment could not be cancelled: %w", g.Timeout, err)
	}
	if _, err := g.ended(ctx, guid); err != nil {
		return err
	}
	why := "see 'cf logs --recent " + a.Name + "'"
	if last.Status.Details.Error != "" {
		why = last.Status.Details.Error
	}
	return fmt.Errorf("its new instances were not ready after %s: %s; the old ones keep running", g.Timeout, why)
}

// ended polls a deployment until it has ended.
func (g *migration) ended(ctx context.Context, guid string) (d deployment, err error) {
	for {
		if err := g.client.Call(ctx, "GET", "/v3/deployments/"+guid, nil, &d); err != nil || d.Status.Value == "FINALIZED" {
			return d, err
		}
		if err := capi.Pause(ctx, 200*time.Millisecond); err != nil {
			return d, err
		}
	}
}
