package transfer

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"cupola/cmd/cupola/capi"
)

// domain is one of routes.
type domain struct {
	named
	Internal    bool
	RouterGroup *struct{ GUID string } `json:"router_group"`

	Relationships struct {
		Organization struct{ Data *struct{ GUID string } }
	}
}

func (d domain) private() bool { return d.Relationships.Organization.Data != nil }

// route is one of an app.
type route struct {
	GUID, Host, Path, Protocol string
	Port                       int

	Relationships struct {
		Domain struct{ Data struct{ GUID string } }
	}
	Destinations []struct {
		App      struct{ GUID string }
		Protocol string
	}
}

// mapDomains reads --domain, and finds the domain that routes get whose own is not there.
func (c *copier) mapDomains(ctx context.Context) error {
	c.domains, c.guids = map[string]string{}, map[string]string{}
	for _, pair := range c.Domain {
		from, to, ok := strings.Cut(pair, "=")
		if !ok || from == "" || to == "" {
			return fmt.Errorf("invalid --domain %q: give OLD=NEW", pair)
		}
		c.domains[from] = to
	}
	all, err := capi.List[domain](ctx, c.to, "/v3/domains")
	if err != nil {
		return err
	}
	for _, d := range all {
		c.guids[d.Name] = d.GUID
		if _, given := c.domains[d.Name]; !given {
			c.domains[d.Name] = d.Name
		}
		if c.usual == "" && !d.private() && !d.Internal && d.RouterGroup == nil {
			c.usual = d.Name
		}
	}
	return nil
}

// routes are the routes of an app, as a manifest writes them, with the domains that they have there; notes are about
// those that cannot be there.
func (c *copier) routes(ctx context.Context, a app, to place) (all []any, notes []string, err error) {
	found, err := capi.List[route](ctx, c.from, "/v3/apps/"+a.GUID+"/routes")
	if err != nil {
		return nil, nil, err
	}
	for _, r := range found {
		d, err := c.domain(ctx, r.Relationships.Domain.Data.GUID)
		if err != nil {
			return nil, nil, err
		}
		name, note, err := c.domainThere(ctx, d, to)
		if err == nil && note == "" && c.restore != nil {
			note, err = c.taken(ctx, r, name, to)
		}
		if err != nil {
			return nil, nil, err
		}
		if note != "" {
			notes = append(notes, fmt.Sprintf("its route %s is left out: %s", r.text(d.Name), note))
			continue
		}
		one := capi.Doc{"route": r.text(name)}
		for _, dst := range r.Destinations {
			if dst.App.GUID == a.GUID && dst.Protocol != "" && dst.Protocol != "tcp" {
				one["protocol"] = dst.Protocol
			}
		}
		all = append(all, one)
	}
	return all, notes, nil
}

// taken says whose a route is there, if it is another space's.
func (c *copier) taken(ctx context.Context, r route, domain string, to place) (note string, err error) {
	query := url.Values{"domain_guids": {c.guids[domain]}, "hosts": {r.Host}, "paths": {r.Path}, "ports": {fmt.Sprint(r.Port)}, "include": {"space"}}
	var found struct {
		Resources []struct {
			Relationships struct {
				Space struct{ Data struct{ GUID string } }
			}
		}
		Included struct{ Spaces []named }
	}
	if err := c.to.Call(ctx, http.MethodGet, "/v3/routes?"+query.Encode(), nil, &found); err != nil || len(found.Resources) == 0 {
		return "", err
	}
	if found.Resources[0].Relationships.Space.Data.GUID == to.space.GUID {
		return "", nil
	}
	return fmt.Sprintf("it is a route of the space %s; give it another domain with --domain %s=NAME, or map another route", found.Included.Spaces[0].Name, domain), nil
}

func (r route) text(domain string) string {
	if r.Port > 0 {
		return fmt.Sprintf("%s:%d", domain, r.Port)
	}
	if r.Host != "" {
		domain = r.Host + "." + domain
	}
	return domain + r.Path
}

// domain is the domain of a GUID where the apps come from.
func (c *copier) domain(ctx context.Context, guid string) (d domain, err error) {
	if d, ok := c.known[guid]; ok {
		return d, nil
	}
	if err := c.from.Call(ctx, http.MethodGet, "/v3/domains/"+guid, nil, &d); err != nil {
		return d, err
	}
	c.known[guid] = d
	return d, nil
}

// domainThere is the name that a domain has there. It creates private ones. The note is why there is none.
func (c *copier) domainThere(ctx context.Context, d domain, to place) (name, note string, err error) {
	if name := c.domains[d.Name]; name != "" {
		return name, "", nil
	}
	switch {
	case d.private():
		guid, err := c.ensure(ctx, "/v3/domains", url.Values{"names": {d.Name}}, capi.Doc{"name": d.Name, "relationships": capi.Doc{"organization": capi.ToOne(to.org.GUID)}})
		if err != nil {
			return "", err.Error(), ctx.Err()
		}
		name, c.guids[d.Name] = d.Name, guid
	case d.Internal || d.RouterGroup != nil:
		return "", fmt.Sprintf("there is no domain %s; give another one with --domain %s=NAME", d.Name, d.Name), nil
	case c.usual == "":
		return "", "there is no shared domain", nil
	default:
		name = c.usual
	}
	c.domains[d.Name] = name
	return name, "", nil
}
