package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

// copier copies from one API to another.
type copier struct {
	from, to *capi.Client
	scope
	show    *command.Report
	restore *restorer // nil: what is copied runs

	domains map[string]string // what routes' domains become
	guids   map[string]string // of the domains there, by name
	usual   string            // the default domain of routes there
	known   map[string]domain // those of routes, by GUID
	staffed map[string]bool   // orgs whose roles were copied, by GUID
	spaces  int               // that were found
	copied  int               // apps
	failed  []string          // apps
}

// named is what most resources have.
type named struct{ GUID, Name string }

// systemOrg holds the platform's own apps.
const systemOrg = "system"

func (c *copier) run(ctx context.Context) error {
	c.known, c.staffed = map[string]domain{}, map[string]bool{}
	if err := c.mapDomains(ctx); err != nil {
		return err
	}
	orgs, err := capi.List[named](ctx, c.from, "/v3/organizations?"+capi.Filter("names", c.Org))
	if err != nil {
		return err
	}
	if c.Org != "" && len(orgs) == 0 {
		return fmt.Errorf("there is no org %s at %s, or this user may not see it", c.Org, c.from.API)
	}
	for _, org := range orgs {
		if org.Name == systemOrg && c.Org == "" {
			continue
		}
		if err := c.org(ctx, org); err != nil {
			return err
		}
	}
	return c.sum()
}

// sum reports the results.
func (c *copier) sum() error {
	switch {
	case len(c.failed) > 0:
		return fmt.Errorf("%d of %s failed: %s. Mend the causes, and run the command again", len(c.failed), command.Counted(len(c.failed)+c.copied, "app"), strings.Join(c.failed, ", "))
	case c.spaces == 0:
		return errors.New("there is no such space, or this user may not see it")
	case len(c.App) > 0 && c.copied == 0:
		return errors.New("there is no such app, or this user may not see it")
	case c.DryRun:
		c.show.Title("%s would be copied from %s to %s.", command.Counted(c.copied, "app"), c.from.API, c.to.API)
	default:
		c.show.Title("%s copied from %s to %s.", command.Counted(c.copied, "app"), c.from.API, c.to.API)
	}
	return nil
}

func (c *copier) org(ctx context.Context, org named) error {
	query := url.Values{"organization_guids": {org.GUID}}
	if c.Space != "" {
		query.Set("names", capi.Exact(c.Space))
	}
	spaces, err := capi.List[named](ctx, c.from, "/v3/spaces?"+query.Encode())
	if err != nil {
		return err
	}
	c.spaces += len(spaces)
	for _, s := range spaces {
		if err := c.space(ctx, org, s); err != nil {
			return fmt.Errorf("%s/%s: %w", org.Name, s.Name, err)
		}
	}
	return nil
}

// place is a space there; it has no GUID while it is missing.
type place struct {
	org, space named
}

func (c *copier) space(ctx context.Context, org, space named) error {
	apps, err := c.apps(ctx, space)
	if err != nil || len(c.App) > 0 && len(apps) == 0 {
		return err
	}
	c.show.Title("%s / %s", org.Name, space.Name)
	to, err := c.target(ctx, org.Name, space.Name)
	if err != nil {
		return err
	}
	if err := c.staff(ctx, org, space, to); err != nil {
		return err
	}
	return c.fill(ctx, space, to, apps)
}

// fill copies services and apps of a space.
func (c *copier) fill(ctx context.Context, space named, to place, apps []app) error {
	services, err := c.services(ctx, space, to, apps)
	if err != nil {
		return err
	}
	for _, a := range apps {
		if err := c.app(ctx, a, to, services); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if _, ended := errors.AsType[capi.Unreached](err); ended {
				return fmt.Errorf("%s: %w", a.Name, err)
			}
			c.show.Step(a.Name, "failed: %s", err)
			c.failed = append(c.failed, a.Name)
			continue
		}
		c.copied++
	}
	return nil
}

// target finds the org and space there, or creates them.
func (c *copier) target(ctx context.Context, org, space string) (p place, err error) {
	p.org, p.space = named{Name: org}, named{Name: space}
	if p.org.GUID, err = c.ensure(ctx, "/v3/organizations", url.Values{"names": {capi.Exact(org)}}, capi.Doc{"name": org}); err != nil || p.org.GUID == "" {
		return p, err
	}
	p.space.GUID, err = c.ensure(ctx, "/v3/spaces", url.Values{"names": {capi.Exact(space)}, "organization_guids": {p.org.GUID}},
		capi.Doc{"name": space, "relationships": capi.Doc{"organization": capi.ToOne(p.org.GUID)}})
	return p, err
}

// ensure gives the GUID of what a query finds there, or of what is created; none in a dry run.
func (c *copier) ensure(ctx context.Context, kind string, query url.Values, body capi.Doc) (string, error) {
	found, err := capi.List[named](ctx, c.to, kind+"?"+query.Encode())
	if err != nil || len(found) > 0 {
		return firstGUID(found), err
	}
	what := strings.TrimSuffix(strings.TrimPrefix(kind, "/v3/"), "s")
	if c.DryRun {
		c.show.Step(what, "%s would be created", body["name"])
		return "", nil
	}
	var made named
	if err := c.to.Call(ctx, http.MethodPost, kind, body, &made); err != nil {
		return "", fmt.Errorf("create %s %s: %w", what, body["name"], err)
	}
	c.show.Step(what, "%s created", body["name"])
	return made.GUID, nil
}

func firstGUID(all []named) string {
	if len(all) == 0 {
		return ""
	}
	return all[0].GUID
}

// role is one of a user, who is among the included ones.
type roleList struct {
	Pagination struct{ Next struct{ Href string } }
	Resources  []struct {
		Type          string
		Relationships struct {
			User struct{ Data struct{ GUID string } }
		}
	}
	Included struct{ Users []user }
}

type user struct{ GUID, Username, Origin string }

// roles gives users who exist there the roles that they have here in an org or space.
func (c *copier) roles(ctx context.Context, of, guid, to string) error {
	var without []string
	var why error // the first one got none
	for path := "/v3/roles?include=user&" + capi.Filter(of+"_guids", guid); path != ""; {
		var list roleList
		if err := c.from.Call(ctx, http.MethodGet, path, nil, &list); err != nil {
			return fmt.Errorf("list roles: %w", err)
		}
		path = list.Pagination.Next.Href
		users := map[string]user{}
		for _, u := range list.Included.Users {
			users[u.GUID] = u
		}
		for _, r := range list.Resources {
			u := users[r.Relationships.User.Data.GUID]
			if u.Username == "" {
				continue // a client's
			}
			if err := c.role(ctx, r.Type, of, to, c.userThere(u)); err != nil && !slices.Contains(without, u.Username) {
				without, why = append(without, u.Username), cmp.Or(why, err)
			}
		}
	}
	if len(without) > 0 {
		c.show.Step("roles", "of the %s not copied for %s: %s", of, strings.Join(without, ", "), why)
	}
	return ctx.Err()
}

// userThere says which user is meant there. In a restore it is the same one: another one may have the name by now.
func (c *copier) userThere(u user) capi.Doc {
	if c.restore != nil {
		return capi.Doc{"guid": u.GUID}
	}
	return capi.Doc{"username": u.Username, "origin": u.Origin}
}

// staff copies the roles of a space, and with the first space those of the org.
func (c *copier) staff(ctx context.Context, org, space named, to place) error {
	if len(c.App) > 0 || c.DryRun {
		return nil
	}
	if !c.staffed[org.GUID] {
		c.staffed[org.GUID] = true
		if err := c.roles(ctx, "organization", org.GUID, to.org.GUID); err != nil {
			return err
		}
	}
	return c.roles(ctx, "space", space.GUID, to.space.GUID)
}

// role gives one role, unless the user has it.
func (c *copier) role(ctx context.Context, kind, of, to string, user capi.Doc) error {
	err := c.to.Call(ctx, http.MethodPost, "/v3/roles", capi.Doc{"type": kind, "relationships": capi.Doc{"user": capi.Doc{"data": user}, of: capi.ToOne(to)}}, nil)
	if err != nil && strings.Contains(err.Error(), "already has") {
		return nil
	}
	return err
}
