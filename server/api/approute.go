package api

import (
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"cupola/server/authz"
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

func viewRoute(c *call, r *cf.Route) doc {
	url := ""
	if d, err := store.Domains.Get(c.Tx, r.DomainGUID); err == nil {
		url = fqdn(r, d) + r.Path
	}
	return with(resource(r.Resource), doc{
		"protocol": "http", "host": r.Host, "path": r.Path, "port": nil, "url": url, "metadata": metadata(r.Metadata),
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

func viewDestinations(r *cf.Route) []doc {
	out := []doc{}
	for _, d := range r.Destinations {
		port := d.Port
		if port == 0 {
			port = 8080
		}
		out = append(out, doc{"guid": d.GUID, "app": doc{"guid": d.AppGUID, "process": doc{"type": d.ProcessType}},
			"weight": nil, "port": port, "protocol": d.Protocol})
	}
	return out
}

type routeRequest struct {
	Host          opt[string]         `json:"host"`
	Path          opt[string]         `json:"path"`
	Port          opt[int]            `json:"port"`
	Options       opt[map[string]any] `json:"options"`
	Metadata      *metadataPatch      `json:"metadata"`
	Relationships struct {
		Space  ref `json:"space"`
		Domain ref `json:"domain"`
	} `json:"relationships"`
}

var hostPattern = regexp.MustCompile(`^(\*|[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)?$`)

// routeFaults are Cloud Controller's messages for a host and path.
func routeFaults(host, path string) []string {
	return must(len(host) <= 63, "Host is too long (maximum is 63 characters)",
		len(host) > 63 || hostPattern.MatchString(host), `Host must be either "*" or contain only alphanumeric characters, "_", or "-"`,
		path == "" || strings.HasPrefix(path, "/"), "Path must start with /",
		path != "/", "Path cannot be exactly '/'",
		!strings.Contains(path, "?"), "Path cannot contain '?'",
		len(path) <= 128, "Path is too long (maximum is 128 characters)")
}

func (r routeRequest) validate() []string {
	faults := routeFaults(r.Host.V, r.Path.V)
	if r.Port.Set && !r.Port.Null {
		faults = append(faults, "Routes with protocol 'http' do not support ports.")
	}
	return faults
}

func createRoute(c *call) (*response, error) {
	var req routeRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	space, err := c.targetSpace(req.Relationships.Space.guid())
	if err != nil {
		return nil, err
	}
	d, err := c.usableDomain(req.Relationships.Domain.guid(), space)
	if err != nil {
		return nil, err
	}
	r := &cf.Route{SpaceGUID: space.GUID, DomainGUID: d.GUID, Host: strings.ToLower(req.Host.V), Path: req.Path.V}
	if r.Options, err = patchOptions(nil, req.Options.V); err != nil {
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
	return d, unprocessable(err, "Invalid domain. Ensure that the domain exists and you have access to it.")
}

// insertRoute adds a route, or says in Cloud Controller's words why it can't.
func (c *call) insertRoute(r *cf.Route, d *cf.Domain) error {
	if err := c.feature("route_creation"); err != nil {
		return err
	}
	if err := invalid(routeFaults(r.Host, r.Path)); err != nil {
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
	if r.Host == "" && d.OrgGUID == "" {
		return cf.Unprocessable("Missing host. Routes in shared domains must have a host defined.")
	}
	if len(fqdn(r, d)) > 253 {
		return cf.Unprocessable("Host combined with domain name must be no more than 253 characters")
	}
	if err := c.routeFree(r, d); err != nil {
		return err
	}
	err := c.withinQuota(r.SpaceGUID, func() error { return store.Routes.Insert(c.Tx, r) })
	if store.IsTaken(err) {
		return c.routeTaken(r, d)
	}
	if err != nil {
		return err
	}
	return c.routeEvent("audit.route.create", r)
}

func (c *call) routeTaken(r *cf.Route, d *cf.Domain) error {
	if r.Path != "" {
		return cf.Unprocessable("Route already exists with host '%s' and path '%s' for domain '%s'.", r.Host, r.Path, d.Name)
	}
	if r.Host == "" {
		return cf.Unprocessable("Route already exists for domain '%s'.", d.Name)
	}
	return cf.Unprocessable("Route already exists with host '%s' for domain '%s'.", r.Host, d.Name)
}

func (c *call) routeEvent(kind string, r *cf.Route) error {
	return c.routeEventWith(kind, r, r.SpaceGUID, nil)
}

func (c *call) routeEventWith(kind string, r *cf.Route, spaceGUID string, data doc) error {
	space, err := store.Spaces.Get(c.Tx, spaceGUID)
	if err != nil {
		return err
	}
	return c.event(kind, target{"route", r.GUID, r.Host, authz.Place{OrgGUID: space.OrgGUID, SpaceGUID: space.GUID}}, data)
}

// appRoute is the route of {guid}, if the actor sees it and satisfies the rule.
func (c *call) appRoute() (*cf.Route, error) {
	r, err := store.Routes.Visible(c.Tx, c.guid(), c.scope)
	if err != nil {
		return nil, err
	}
	_, err = c.inSpace(r.SpaceGUID)
	return r, err
}

// patchOptions sets the options that have a value and removes those that are
// null. There is one: hash-based routing is a feature that is off.
func patchOptions(have, p map[string]any) (map[string]any, error) {
	out := map[string]any{}
	for k, v := range have {
		out[k] = v
	}
	for k, v := range p {
		switch {
		case k != "loadbalancing":
			return nil, cf.Unprocessable("Options Unknown field(s): '%s'", k)
		case v == nil:
			delete(out, k)
		case v != "round-robin" && v != "least-connection":
			return nil, cf.Unprocessable("Options Loadbalancing must be one of 'round-robin, least-connection' if present")
		default:
			out[k] = v
		}
	}
	return out, nil
}

func updateRoute(c *call) (*response, error) {
	var req struct {
		Options  opt[map[string]any] `json:"options"`
		Metadata *metadataPatch      `json:"metadata"`
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	r, err := c.appRoute()
	if err != nil {
		return nil, err
	}
	if r.Options, err = patchOptions(r.Options, req.Options.V); err != nil {
		return nil, err
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
	return c.routeEvent("audit.route.delete-request", r)
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
	routes, err := store.Routes.By(c.Tx, "owner_space_guids", s.GUID)
	if err != nil {
		return nil, err
	}
	for _, r := range routes {
		n, err := store.RouteBindings.Count(c.Tx, store.Query{Where: map[string][]string{"route_guids": {r.GUID}}})
		if err != nil {
			return nil, err
		}
		if len(r.Destinations)+n > 0 {
			continue
		}
		if err := c.removeRoute(r); err != nil {
			return nil, err
		}
	}
	return c.accepted("space.delete_unmapped_routes", "spaces", s.GUID)
}

type destinationRequest struct {
	App struct {
		GUID    string `json:"guid"`
		Process *struct {
			Type string `json:"type"`
		} `json:"process"`
	} `json:"app"`
	Weight   opt[int]    `json:"weight"`
	Port     opt[int]    `json:"port"`
	Protocol opt[string] `json:"protocol"`
}

func (d destinationRequest) destination() cf.Destination {
	out := cf.Destination{GUID: uuid.NewString(), AppGUID: d.App.GUID, ProcessType: "web", Port: d.Port.or(0), Protocol: d.Protocol.or("http1")}
	if d.App.Process != nil && d.App.Process.Type != "" {
		out.ProcessType = d.App.Process.Type
	}
	return out
}

type destinationsRequest struct {
	Destinations []destinationRequest `json:"destinations"`
}

func (r destinationsRequest) validate() (faults []string) {
	for _, d := range r.Destinations {
		faults = append(faults, must(!d.Weight.Set || d.Weight.Null, "Destination weights are not supported",
			!d.Port.Set || d.Port.Null || d.Port.V >= 1024 && d.Port.V <= 65535, "Destinations must have a port between 1024 and 65535",
			slices.Contains([]string{"http1", "http2"}, d.Protocol.or("http1")), "Destination protocol must be 'http1' or 'http2'")...)
	}
	return faults
}

func addDestinations(c *call) (*response, error)     { return c.changeDestinations(false) }
func replaceDestinations(c *call) (*response, error) { return c.changeDestinations(true) }

func (c *call) changeDestinations(replace bool) (*response, error) {
	var req destinationsRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	r, err := c.appRoute()
	if err != nil {
		return nil, err
	}
	var wanted []cf.Destination
	for _, d := range req.Destinations {
		wanted = append(wanted, d.destination())
	}
	if replace {
		r.Destinations = nil
	}
	if err := c.mapRoute(r, wanted...); err != nil {
		return nil, err
	}
	return ok(c.destinations(r))
}

func (c *call) destinations(r *cf.Route) doc {
	return doc{"destinations": viewDestinations(r), "links": doc{
		"self": c.link("/v3/routes/%s/destinations", r.GUID), "route": c.link("/v3/routes/%s", r.GUID)}}
}

// mapRoute adds destinations that the route does not have yet.
func (c *call) mapRoute(r *cf.Route, wanted ...cf.Destination) error {
	for _, d := range wanted {
		app, err := store.Apps.Visible(c.Tx, d.AppGUID, c.scope)
		if err != nil {
			return unprocessable(err, "App(s) with guid(s) \"%s\" do not exist or you do not have access.", d.AppGUID)
		}
		if app.SpaceGUID != r.SpaceGUID && !slices.Contains(r.SharedSpaces, app.SpaceGUID) {
			return cf.Unprocessable("Routes destinations must be in either the route's space or the route's shared spaces")
		}
		if slices.ContainsFunc(r.Destinations, func(have cf.Destination) bool {
			return have.AppGUID == d.AppGUID && have.ProcessType == d.ProcessType && have.Port == d.Port
		}) {
			continue
		}
		r.Destinations = append(r.Destinations, d)
		if err := c.appEvent("audit.app.map-route", app, doc{"route_guid": r.GUID}); err != nil {
			return err
		}
	}
	return store.Routes.Update(c.Tx, r)
}

func listDestinations(c *call) (*response, error) {
	r, err := c.appRoute()
	if err != nil {
		return nil, err
	}
	return ok(c.destinations(r))
}

func deleteDestination(c *call) (*response, error) {
	r, err := c.appRoute()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(r.Destinations, func(d cf.Destination) bool { return d.GUID == c.param("destination") })
	if i < 0 {
		return nil, cf.Unprocessable("Unable to unmap route from destination. Ensure the route has a destination with this guid.")
	}
	app, err := store.Apps.Get(c.Tx, r.Destinations[i].AppGUID)
	if err == nil {
		err = c.appEvent("audit.app.unmap-route", app, doc{"route_guid": r.GUID})
	}
	if err != nil && !store.IsNotFound(err) {
		return nil, err
	}
	r.Destinations = slices.Delete(r.Destinations, i, i+1)
	if err := store.Routes.Update(c.Tx, r); err != nil {
		return nil, err
	}
	return noContent()
}

func updateDestination(c *call) (*response, error) {
	var req struct {
		Protocol opt[string] `json:"protocol"`
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	r, err := c.appRoute()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(r.Destinations, func(d cf.Destination) bool { return d.GUID == c.param("destination") })
	if i < 0 {
		return nil, cf.Errorf(cf.ResourceNotFound, "Destination not found")
	}
	protocol := req.Protocol.or("http1")
	if protocol != "http1" && protocol != "http2" {
		return nil, cf.Unprocessable("Destination protocol must be 'http1' or 'http2'")
	}
	r.Destinations[i].Protocol = protocol
	if err := store.Routes.Update(c.Tx, r); err != nil {
		return nil, err
	}
	return ok(viewDestinations(r)[i])
}

const routeIncludes = "include=domain|space|space.organization"

func includeOfRoutes(c *call, rows []*cf.Route, what string) (string, []doc, error) {
	spaces := guidsOf(rows, func(r *cf.Route) string { return r.SpaceGUID })
	switch what {
	case "domain":
		docs, err := including(c, store.Domains, viewDomain, guidsOf(rows, func(r *cf.Route) string { return r.DomainGUID }))
		return "domains", docs, err
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
