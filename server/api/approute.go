package api

import (
	"regexp"
	"strings"

	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/server/control/quota"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// fqdn is the name under which a route is reached.
func fqdn(r *cf.Route, d *cf.Domain) string {
	if r.Host == "" {
		return d.Name
	}
	return r.Host + "." + d.Name
}

// uri is the whole of what a route is reached by.
func uri(r *cf.Route, d *cf.Domain) string { return desire.URI(r, d) }

func viewRoute(c *call, r *cf.Route) doc {
	url, protocol := "", "http"
	if d, err := recall(c, store.Domains, r.DomainGUID); err == nil {
		url, protocol = uri(r, d), d.Protocol()
	}
	var port any
	if r.Port > 0 {
		port = r.Port
	}
	return with(resource(r.Resource), doc{
		"protocol": protocol, "host": r.Host, "path": r.Path, "port": port, "url": url, "metadata": metadata(r.Metadata),
		"destinations": viewDestinations(r), "options": orEmptyAny(r.Options),
		"relationships": doc{"space": toOne(r.SpaceGUID), "domain": toOne(r.DomainGUID), "shared_spaces": toMany(r.SharedSpaces)},
		"links": doc{
			"self":         c.link("/v3/routes/%s", r.GUID),
			"space":        c.link("/v3/spaces/%s", r.SpaceGUID),
			"domain":       c.link("/v3/domains/%s", r.DomainGUID),
			"destinations": c.link("/v3/routes/%s/destinations", r.GUID),
		},
	})
}

func orEmptyAny(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

type routeRequest struct {
	Host          opt[string]    `json:"host"`
	Path          opt[string]    `json:"path"`
	Port          opt[int]       `json:"port"`
	Options       opt[any]       `json:"options"`
	Metadata      *metadataPatch `json:"metadata"`
	Relationships struct {
		Space  ref `json:"space"`
		Domain ref `json:"domain"`
	} `json:"relationships"`
}

var hostPattern = regexp.MustCompile(`^([A-Za-z0-9_-]+|\*)?$`)

// routeFaults are Cloud Controller's messages for a host and path.
func routeFaults(host, path string) []string {
	return control.Must(len(host) <= 63, "Host is too long (maximum is 63 characters)",
		len(host) > 63 || hostPattern.MatchString(host), `Host must be either "*" or contain only alphanumeric characters, "_", or "-"`,
		path == "" || strings.HasPrefix(path, "/"), "Path must begin with /",
		!strings.Contains(path, "?"), "Path cannot contain ?",
		path != "/", "Path cannot be exactly /",
		len(path) <= 128, "Path is too long (maximum is 128 characters)")
}

func (r routeRequest) validate() []string {
	return append(routeFaults(r.Host.V, r.Path.V), control.Must(
		r.Port.V >= 0, "Port must be greater than or equal to 0",
		r.Port.V <= 65535, "Port must be less than or equal to 65535")...)
}

func createRoute(c *call) (*response, error) {
	var req routeRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	options, err := c.options(req.Options)
	if err != nil {
		return nil, err
	}
	space, err := c.TargetSpace(req.Relationships.Space.guid())
	if err != nil {
		return nil, err
	}
	d, err := c.usableDomain(req.Relationships.Domain.guid(), space)
	if err != nil {
		return nil, err
	}
	r := &cf.Route{SpaceGUID: space.GUID, DomainGUID: d.GUID, Host: strings.ToLower(req.Host.V), Path: req.Path.V, Port: req.Port.V}
	if d.TCP() && !req.Port.Set {
		if r.Port, err = c.anyPort(); err != nil {
			return nil, err
		}
	}
	if r.Options, err = patchOptions(nil, options); err != nil {
		return nil, err
	}
	if err := req.Metadata.apply(&r.Metadata); err != nil {
		return nil, err
	}
	if err := c.insertRoute(r, d); err != nil {
		return nil, err
	}
	return created(viewRoute(c, r))
}

func (c *call) usableDomain(guid string, space *cf.Space) (*cf.Domain, error) {
	d, err := store.Domains.First(c.Tx, store.Query{Where: map[string][]string{"guids": {guid}, "usable_by_organization_guids": {space.OrgGUID}}})
	return d, control.Unprocessable(err, "Invalid domain. Ensure that the domain exists and you have access to it.")
}

// insertRoute adds a route, or says in Cloud Controller's words why it can't.
func (c *call) insertRoute(r *cf.Route, d *cf.Domain) error {
	if err := c.Feature("route_creation"); err != nil {
		return err
	}
	if err := control.Invalid(routeFaults(r.Host, r.Path)); err != nil {
		return err
	}
	if err := c.checkPort(r, d); err != nil {
		return err
	}
	if r.Host == "*" && d.OrgGUID == "" && !c.Actor.Admin {
		return cf.Unprocessable("You do not have sufficient permissions to create a route with a wildcard host on a domain not scoped to an organization.")
	}
	if r.Host == "*" && d.Internal {
		return cf.Unprocessable("Wildcard hosts are not supported for internal domains.")
	}
	if r.Path != "" && d.Internal {
		return cf.Unprocessable("Paths are not supported for internal domains.")
	}
	if r.Host == "" && d.OrgGUID == "" && !d.TCP() {
		return cf.Unprocessable("Missing host. Routes in shared domains must have a host defined.")
	}
	if len(fqdn(r, d)) > 253 {
		return cf.Unprocessable("Host combined with domain name must be no more than 253 characters.")
	}
	if err := c.routeFree(r, d); err != nil {
		return err
	}
	err := quota.Within(c.Tx, r.SpaceGUID, quota.Routes, func() error { return store.Routes.Insert(c.Tx, r) })
	if store.IsTaken(err) {
		return c.routeTaken(r, d)
	}
	if err != nil {
		return err
	}
	return c.routeEvent(audit.RouteCreate, r)
}

func (c *call) routeTaken(r *cf.Route, d *cf.Domain) error {
	if r.Port > 0 {
		return cf.Unprocessable("Route already exists with port '%d' for domain '%s'.", r.Port, d.Name)
	}
	if r.Path != "" {
		return cf.Unprocessable("Route already exists with host '%s' and path '%s' for domain '%s'.", r.Host, r.Path, d.Name)
	}
	if r.Host == "" {
		return cf.Unprocessable("Route already exists for domain '%s'.", d.Name)
	}
	return cf.Unprocessable("Route already exists with host '%s' for domain '%s'.", r.Host, d.Name)
}

func (c *call) routeEvent(kind audit.Type, r *cf.Route) error {
	return c.routeEventWith(kind, r, r.SpaceGUID, nil)
}

func (c *call) routeEventWith(kind audit.Type, r *cf.Route, spaceGUID string, data doc) error {
	space, err := store.Spaces.Get(c.Tx, spaceGUID)
	if err != nil {
		return err
	}
	return c.Audit(kind, audit.Target{Type: "route", GUID: r.GUID, Name: r.Host, Place: access.At(space)}, data)
}

// appRoute is the route of {guid}, if the actor sees it and satisfies the rule.
func (c *call) appRoute() (*cf.Route, error) {
	r, err := store.Routes.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, err
	}
	_, err = c.InSpace(r.SpaceGUID)
	return r, err
}

func updateRoute(c *call) (*response, error) {
	var req struct {
		Options  opt[any]       `json:"options"`
		Metadata *metadataPatch `json:"metadata"`
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	options, err := c.options(req.Options)
	if err != nil {
		return nil, err
	}
	r, err := c.appRoute()
	if err != nil {
		return nil, err
	}
	if options != nil {
		if r.Options, err = patchOptions(r.Options, options); err != nil {
			return nil, err
		}
	}
	if err := req.Metadata.apply(&r.Metadata); err != nil {
		return nil, err
	}
	if err := store.Routes.Update(c.Tx, r); err != nil {
		return nil, err
	}
	return ok(viewRoute(c, r))
}

func deleteRoute(c *call) (*response, error) {
	r, err := c.appRoute()
	if err != nil {
		return nil, err
	}
	if err := c.removeRoute(r); err != nil {
		return nil, err
	}
	return c.accepted("route.delete", "routes", r.GUID)
}

func (c *call) removeRoute(r *cf.Route) error {
	if err := c.dropRoute(r); err != nil {
		return err
	}
	return c.routeEvent(audit.RouteDelete, r)
}

// deleteUnmappedRoutes deletes the routes of a space that lead nowhere.
func deleteUnmappedRoutes(c *call) (*response, error) {
	s, err := c.space()
	if err != nil {
		return nil, err
	}
	if c.Request.URL.Query().Get("unmapped") != "true" {
		return nil, cf.Unprocessable("Mass delete not supported for routes. Use 'unmapped' parameter to delete all unmapped routes.")
	}
	return c.deletes(jobDeleteUnmapped, "spaces", s.GUID)
}

const routeIncludes = "include=domain|space|space.organization|route_policies"

func includeOfRoutes(c *call, rows []*cf.Route, what string) (string, []doc, error) {
	spaces := control.GUIDs(rows, func(r *cf.Route) string { return r.SpaceGUID })
	switch what {
	case "domain":
		docs, err := including(c, store.Domains, viewDomain, control.GUIDs(rows, func(r *cf.Route) string { return r.DomainGUID }))
		return "domains", docs, err
	case "route_policies":
		policies, err := store.RoutePolicies.By(c.Tx, "route_guids", control.GUIDs(rows, func(r *cf.Route) string { return r.GUID })...)
		return "route_policies", views(c, policies, viewRoutePolicy), err
	case "space":
		docs, err := including(c, store.Spaces, viewSpace, spaces)
		return "spaces", docs, err
	}
	docs, err := includingOrgsOf(c, spaces)
	return "organizations", docs, err
}

var listRoutes = inTx(func(c *call) (*response, error) {
	return listIncluding(c, store.Routes, viewRoute, includeOfRoutes, routeIncludes)
})

func listAppRoutes(c *call) (*response, error) {
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	return listRows(c, store.Routes, viewRoute, func(q *listQuery) error {
		q.Where["app_guids"] = []string{app.GUID}
		return nil
	})
}
