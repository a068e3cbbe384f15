package transfer

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/server/admin/backup"
	"cupola/store"
	"cupola/store/cf"
)

// RestoreFlags say which resources of a space are restored.
type RestoreFlags struct {
	App    []string `help:"An app; by default all of the space. May be repeated. Service instances come with the apps that are bound to them." short:"a" sep:"none"`
	Domain []string `help:"Routes of one domain get another one. May be repeated." placeholder:"OLD=NEW" sep:"none"`
	Start  bool     `help:"Start the apps that were started."`
	DryRun bool     `help:"Show what would be restored, and change nothing."`
}

// Restore restores a space of a backup into a running daemon, as a new space.
type Restore struct {
	RestoreFlags
	To    *capi.Client
	Dir   string // what backup.ExtractSpace extracted
	Space *backup.Space
	New   string // the name of the new space
	// Secret is the daemon's: who does not know it cannot make a space into which a restore goes on.
	Secret []byte
	// Create creates a service instance of the built-in broker with its data, in a space. The body has the fields of the request that say neither
	// of which plan nor of what it is made.
	Create func(ctx context.Context, space string, body capi.Doc, i backup.SpaceInstance) error
}

// restoring is the annotation of a space that is not restored to its end: it says what it is restored from, as Restore.origin does.
const restoring = "cupola.dev/restoring"

// Run restores. What it did stays when it is broken off: it goes on when it is run again.
func (r *Restore) Run(e *command.Env) (err error) {
	from, err := openOffline(e.Ctx, r.Dir)
	if err != nil {
		return fmt.Errorf("open the backup: %w", err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	c := &copier{from: from.client, to: r.To, show: command.NewReport(e), restore: &restorer{r, from.store},
		scope: scope{App: r.App, Domain: r.Domain, Stopped: !r.Start, DryRun: r.DryRun}, known: map[string]domain{}}
	return c.runRestore(e.Ctx)
}

// restorer restores what a database has.
type restorer struct {
	*Restore
	store *store.Store
}

func (c *copier) runRestore(ctx context.Context) error {
	if err := c.mapDomains(ctx); err != nil {
		return err
	}
	r, space := c.restore, named{c.restore.Space.GUID, c.restore.Space.Name}
	apps, err := c.apps(ctx, space)
	if err != nil {
		return err
	}
	for _, name := range r.App {
		if !slices.ContainsFunc(apps, func(a app) bool { return a.Name == name }) {
			return fmt.Errorf("the space %s of the backup has no app %s", space.Name, name)
		}
	}
	to, err := c.newSpace(ctx)
	if err != nil {
		return err
	}
	if len(c.App) == 0 && !c.DryRun {
		if err := c.roles(ctx, "space", space.GUID, to.space.GUID); err != nil {
			return err
		}
	}
	if err := c.fill(ctx, space, to, apps); err != nil {
		return err
	}
	if err := c.tellLeft(ctx, apps); err != nil {
		return err
	}
	return c.endRestore(ctx, to)
}

// endRestore says what came of it. From then on the space is as any other one.
func (c *copier) endRestore(ctx context.Context, to place) error {
	if len(c.failed) > 0 {
		return fmt.Errorf("%s failed. Mend the causes, and run the command again", strings.Join(c.failed, ", "))
	}
	r := c.restore
	if c.DryRun {
		c.show.Title("%s of the space %s as of %s would be restored into the new space %s.", command.Counted(c.copied, "app"), r.Space.Name, r.made(), r.New)
		return nil
	}
	if err := c.to.Call(ctx, http.MethodPatch, "/v3/spaces/"+to.space.GUID, capi.Doc{"metadata": capi.Doc{"annotations": capi.Doc{restoring: nil}}}, nil); err != nil {
		return err
	}
	state := "started as they were"
	if c.Stopped {
		state = "stopped"
	}
	c.show.Title("%s of the space %s as of %s restored into the new space %s, %s.", command.Counted(c.copied, "app"), r.Space.Name, r.made(), r.New, state)
	return nil
}

// Check refuses what cannot be restored because of what runs.
func (r *Restore) Check(ctx context.Context) error {
	_, err := r.findSpace(ctx)
	return err
}

// findSpace finds the org, and the space that an earlier restore of the same created, if there is one.
func (r *Restore) findSpace(ctx context.Context) (p place, err error) {
	p.space = named{Name: r.New}
	if p.org, err = r.findOrg(ctx); err != nil {
		return p, err
	}
	all, err := capi.List[struct {
		named
		Metadata struct{ Annotations map[string]string }
	}](ctx, r.To, "/v3/spaces?"+url.Values{"names": {capi.Exact(r.New)}, "organization_guids": {p.org.GUID}}.Encode())
	if err != nil || len(all) == 0 {
		return p, err
	}
	p.space.GUID = all[0].GUID
	was := all[0].Metadata.Annotations[restoring]
	if was == r.origin(p.org.GUID) {
		return p, nil
	}
	if _, at := parseOrigin(was); !at.IsZero() {
		return p, fmt.Errorf("the space %s is a restore as of %s that did not end: go on with that one, give --new and another name, or delete the space", r.New, at.Format(time.RFC3339))
	}
	return p, fmt.Errorf("there is a space %s in the org %s already: give --new and another name", r.New, p.org.Name)
}

// findOrg finds the org that the space was in, whatever its name is by now; another one of the same name where that is gone.
func (r *Restore) findOrg(ctx context.Context) (org named, err error) {
	all, err := capi.List[named](ctx, r.To, "/v3/organizations?"+capi.Filter("guids", r.Space.OrgGUID))
	if err != nil {
		return org, err
	}
	if len(all) > 0 {
		return all[0], nil
	}
	org.Name = r.Space.Org
	org.GUID, err = r.To.First(ctx, "org "+r.Space.Org+", where the space was: create it first", "/v3/organizations?"+capi.Filter("names", r.Space.Org))
	return org, err
}

// origin is the value of restoring: a space, the time as of which it is restored, and a code for a space of this name in an org, which only
// who has Secret can make.
func (r *Restore) origin(org string) string {
	code := hmac.New(sha256.New, r.Secret)
	fmt.Fprintf(code, "cupola restore: %q %q %q %q", r.Space.GUID, r.made(), org, r.New)
	return r.Space.GUID + " " + r.made() + " " + hex.EncodeToString(code.Sum(nil)[:16])
}

// parseOrigin returns the space and the time of an origin; zero values if it is not one.
func parseOrigin(text string) (space string, made time.Time) {
	space, rest, _ := strings.Cut(text, " ")
	at, _, _ := strings.Cut(rest, " ")
	made, _ = time.Parse(time.RFC3339, at)
	return space, made
}

// Begun is the time as of which an earlier restore into the new space is, in an org or any, that did not end; the zero time if there is none. It
// needs no Space.
func (r *Restore) Begun(ctx context.Context, org string) (time.Time, error) {
	all, err := capi.List[struct {
		Metadata      struct{ Annotations map[string]string }
		Relationships struct {
			Organization struct{ Data struct{ GUID string } }
		}
	}](ctx, r.To, "/v3/spaces?"+capi.Filter("names", r.New))
	if err != nil {
		return time.Time{}, err
	}
	for _, s := range all {
		space, made := parseOrigin(s.Metadata.Annotations[restoring])
		began, in, of := *r, s.Relationships.Organization.Data.GUID, named{}
		began.Space = &backup.Space{GUID: space, Made: made}
		if made.IsZero() || began.origin(in) != s.Metadata.Annotations[restoring] {
			continue
		}
		if err := r.To.Call(ctx, http.MethodGet, "/v3/organizations/"+in, nil, &of); err != nil {
			return time.Time{}, err
		}
		if org == "" || org == of.Name {
			return made, nil
		}
	}
	return time.Time{}, nil
}

func (r *Restore) made() string { return r.Space.Made.UTC().Format(time.RFC3339) }

// newSpace creates the space to restore into, unless it is there.
func (c *copier) newSpace(ctx context.Context) (place, error) {
	p, err := c.restore.findSpace(ctx)
	if err != nil {
		return p, err
	}
	c.show.Title("%s / %s", p.org.Name, p.space.Name)
	if p.space.GUID != "" {
		c.show.Step("space", "%s goes on, where the last restore ended", p.space.Name)
	}
	if c.DryRun {
		return p, nil
	}
	var was *cf.Space
	err = c.restore.store.Read(ctx, func(tx *store.Tx) (err error) {
		was, err = store.Spaces.Get(tx, c.restore.Space.GUID)
		return err
	})
	if err == nil && p.space.GUID == "" {
		err = c.createSpace(ctx, &p, was)
	}
	if err != nil {
		return p, err
	}
	return p, c.to.Call(ctx, http.MethodPatch, "/v3/spaces/"+p.space.GUID+"/features/ssh", capi.Doc{"enabled": was.AllowSSH}, nil)
}

// createSpace creates the space with what its original says of itself.
func (c *copier) createSpace(ctx context.Context, p *place, was *cf.Space) error {
	annotations := map[string]string{}
	maps.Copy(annotations, was.Annotations)
	annotations[restoring] = c.restore.origin(p.org.GUID)
	metadata := capi.Doc{"annotations": annotations}
	if len(was.Labels) > 0 {
		metadata["labels"] = was.Labels
	}
	body := capi.Doc{"name": p.space.Name, "relationships": capi.Doc{"organization": capi.ToOne(p.org.GUID)}, "metadata": metadata}
	if err := c.to.Call(ctx, http.MethodPost, "/v3/spaces", body, &p.space); err != nil {
		return fmt.Errorf("create the space %s: %w", p.space.Name, err)
	}
	c.show.Step("space", "%s created", p.space.Name)
	return nil
}

// bits are the droplet of an app, with its package, or else what it is staged from again.
func (r *restorer) bits(ctx context.Context, current *dropletView, p packageView) (b bits, err error) {
	switch {
	case p.State == ready && p.Type == "docker":
		b = bits{kind: image, guid: p.GUID, image: p.Data.Image}
		err = r.store.Read(ctx, func(tx *store.Tx) error {
			row, err := store.Packages.Get(tx, p.GUID)
			if err == nil {
				b.credential = row.Credential
			}
			return err
		})
	case current != nil && current.Lifecycle.Type == cf.LifecycleBuildpack:
		b = bits{kind: droplet, guid: current.GUID, processes: current.Processes}
		if p.State == ready {
			b.source = p.GUID
		}
	case p.State == ready:
		b = bits{kind: files, guid: p.GUID}
	}
	return b, err
}

// made waits for a service instance that a restore which was broken off began, and reports whether it is there. It deletes one that was not made,
// unless nothing changes.
func (c *copier) made(ctx context.Context, s instance) (bool, error) {
	at := "/v3/service_instances/" + s.GUID
	for !c.DryRun && s.LastOperation.State == "in progress" {
		if err := capi.Pause(ctx, 500*time.Millisecond); err != nil {
			return false, err
		}
		if err := c.to.Call(ctx, http.MethodGet, at, nil, &s); err != nil {
			return false, err
		}
	}
	if s.LastOperation.Type != "create" || s.LastOperation.State != "failed" {
		return true, nil
	}
	if c.DryRun {
		return false, nil
	}
	return false, c.to.Begin(ctx, http.MethodDelete, at, nil, nil)
}

// restoreService creates a service instance with its data, and reports whether it is there. What cannot be restored is said, and
// counts as failed if trying again may help.
func (c *copier) restoreService(ctx context.Context, s instance, to place) (bool, error) {
	i, ok := c.restore.Space.Services[s.GUID]
	switch {
	case !ok:
		c.show.Step("service", "%s is not restored: it is not of the built-in broker's services with data, or is shared by another space", s.Name)
		return false, nil
	case i.Content == "":
		c.show.Step("service", "%s is not restored: it was created since the backup, or this was made --without-volumes", s.Name)
		return false, nil
	case c.DryRun:
		c.show.Step("service", "%s would be restored", s.Name)
		return true, nil
	}
	body := capi.Doc{"name": s.Name}
	if len(s.Tags) > 0 {
		body["tags"] = s.Tags
	}
	if len(s.Metadata) > 0 {
		body["metadata"] = s.Metadata
	}
	err := c.restore.Create(ctx, to.space.GUID, body, i)
	if _, ended := errors.AsType[capi.Unreached](err); ended || ctx.Err() != nil {
		return false, err
	}
	if err != nil {
		c.show.Step("service", "%s failed: %s", s.Name, err)
		c.failed = append(c.failed, s.Name)
		return false, nil
	}
	c.show.Step("service", "%s restored", s.Name)
	return true, nil
}

// tellLeft names what the space had besides.
func (c *copier) tellLeft(ctx context.Context, apps []app) error {
	var left []string
	err := c.restore.store.Read(ctx, func(tx *store.Tx) (err error) {
		left, err = c.restore.left(tx, apps)
		return err
	})
	if len(left) > 0 {
		c.show.Step("left out", "%s", strings.Join(left, ", "))
	}
	return err
}

// left names what the space and the apps have that is not restored.
func (r *restorer) left(tx *store.Tx, apps []app) (all []string, err error) {
	space, err := store.Spaces.Get(tx, r.Space.GUID)
	if err != nil {
		return nil, err
	}
	for _, one := range []struct{ what, guid string }{{"the quota", space.QuotaGUID}, {"the isolation segment", space.SegmentGUID}, {"the placement pool", space.PoolGUID}} {
		if one.guid != "" {
			all = append(all, one.what)
		}
	}
	of := map[string][]string{"running_space_guids": {space.GUID}}
	for _, a := range apps {
		of["app_guids"] = append(of["app_guids"], a.GUID)
	}
	of["sources"] = of["app_guids"]
	instances, err := store.ServiceInstances.By(tx, "owner_space_guids", space.GUID)
	for _, i := range instances {
		of["service_instance_guids"] = append(of["service_instance_guids"], i.GUID)
	}
	if err != nil {
		return nil, err
	}
	rows, err := leftRows(tx, of)
	return append(all, rows...), err
}

// leftRows names the kinds of rows that are not restored. of has the values of filters that choose those of a space.
func leftRows(tx *store.Tx, of map[string][]string) (all []string, err error) {
	for _, one := range []struct {
		what, filter, kind string
		count              func(*store.Tx, store.Query) (int, error)
	}{
		{"service keys", "service_instance_guids", cf.BindingKey, store.ServiceBindings.Count},
		{"bindings of services to routes", "service_instance_guids", "", store.RouteBindings.Count},
		{"network policies", "sources", "", store.NetworkPolicies.Count},
		{"scaling policies", "app_guids", "", store.ScalingPolicies.Count},
		{"revisions", "app_guids", "", store.Revisions.Count},
		{"tasks", "app_guids", "", store.Tasks.Count},
		{"security groups", "running_space_guids", "", store.SecurityGroups.Count},
	} {
		if len(of[one.filter]) == 0 {
			continue
		}
		where := map[string][]string{one.filter: of[one.filter]}
		if one.kind != "" {
			where["type"] = []string{one.kind}
		}
		n, err := one.count(tx, store.Query{Where: where})
		if err != nil {
			return nil, err
		}
		if n > 0 {
			all = append(all, one.what)
		}
	}
	return all, nil
}
