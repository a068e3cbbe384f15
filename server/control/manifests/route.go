package manifests

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/server/control/routes"
	"cupola/server/manifest"
	"cupola/store"
	"cupola/store/cf"
)

// domainNames are the names that the domain of a route may have, the longest first.
func domainNames(name string) (names []string) {
	for more := true; more; _, name, more = strings.Cut(name, ".") {
		names = append(names, name)
	}
	return names
}

// applyRoutes maps an app's routes: none, those given, or, when it has none
// yet, a random or its default one. In this order, as Cloud Controller does.
func applyRoutes(c *control.Session, app *cf.App, m *manifest.App) error {
	have, err := store.Routes.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return err
	}
	switch {
	case m.NoRoute:
		return unmapAll(c, app, have)
	case m.RoutesSet:
		return mapURLs(c, app, m.Routes)
	case len(have) > 0 || !(m.RandomRoute || m.DefaultRoute):
		return nil
	}
	if m.RandomRoute {
		return mapHost(c, app, app.Name+"-"+randomWords())
	}
	if fault := manifest.DefaultHostFault(app.Name); fault != "" {
		return cf.Unprocessable("%s", fault)
	}
	return mapHost(c, app, app.Name)
}

func unmapAll(c *control.Session, app *cf.App, have []*cf.Route) error {
	for _, r := range have {
		if err := routes.UnmapApp(c, r, app); err != nil {
			return err
		}
	}
	return nil
}

func mapURLs(c *control.Session, app *cf.App, routes []manifest.Route) error {
	space, err := store.Spaces.Get(c.Tx, app.SpaceGUID)
	if err != nil {
		return err
	}
	for _, want := range routes {
		if err := mapURL(c, app, space, want); err != nil {
			return err
		}
	}
	return nil
}

// routeInvalid says of which route of a manifest an error is, as Cloud
// Controller does.
func routeInvalid(url string, err error) error {
	if !control.IsKind(err, cf.UnprocessableEntity) {
		return err
	}
	return cf.Unprocessable("For route '%s': %s", url, err)
}

func mapURL(c *control.Session, app *cf.App, space *cf.Space, want manifest.Route) error {
	r, err := routeByURL(c, want.URL, space)
	if err != nil {
		return err
	}
	if len(want.Options) > 0 {
		if r.Options, err = routes.PatchOptions(r.Options, want.Options); err != nil {
			return routeInvalid(want.URL, err)
		}
	}
	if i := slices.IndexFunc(r.Destinations, func(d cf.Destination) bool { return d.AppGUID == app.GUID }); i >= 0 {
		return routeInvalid(want.URL, remap(c, r, i, want.Protocol))
	}
	return routeInvalid(want.URL, routes.Map(c, r, cf.Destination{GUID: control.NewGUID(), AppGUID: app.GUID, ProcessType: "web", Protocol: want.Protocol}))
}

// remap gives a destination that there is another protocol; "" leaves it as it is.
func remap(c *control.Session, r *cf.Route, i int, protocol string) error {
	if protocol != "" {
		now := r.Destinations[i]
		now.Protocol = protocol
		if _, err := routes.Complete(c, r, []cf.Destination{now}); err != nil {
			return err
		}
		r.Destinations[i] = now
	}
	return store.Routes.Update(c.Tx, r)
}

// routeByURL finds the route of a URL, or makes it in the domain with the
// longest name that fits.
func routeByURL(c *control.Session, url string, space *cf.Space) (*cf.Route, error) {
	full, port, path, ok := manifest.SplitURL(url)
	if !ok {
		return nil, cf.Unprocessable("The route '%s' is not a properly formed URL", url)
	}
	for _, name := range domainNames(full) {
		d, err := store.Domains.First(c.Tx, store.Query{Where: map[string][]string{"names": {name}, "usable_by_organization_guids": {space.OrgGUID}}})
		if store.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		host := strings.TrimSuffix(strings.TrimSuffix(full, name), ".")
		if strings.Contains(host, ".") {
			break
		}
		r, err := findOrMakeRoute(c, &cf.Route{SpaceGUID: space.GUID, DomainGUID: d.GUID, Host: host, Path: path, Port: port}, d)
		if errors.Is(err, errRouteElsewhere) {
			return nil, err
		}
		return r, routeInvalid(url, err)
	}
	return nil, cf.Unprocessable("No domains exist for route %s", url)
}

// errRouteElsewhere is met where a route belongs to another space.
var errRouteElsewhere = cf.Unprocessable("Routes cannot be mapped to destinations in different spaces")

// findOrMakeRoute finds a route that apps of its space can be mapped to. In a TCP
// domain a manifest's route without a port is any that there is.
func findOrMakeRoute(c *control.Session, r *cf.Route, d *cf.Domain) (*cf.Route, error) {
	where := map[string][]string{"domain_guids": {d.GUID}, "hosts": {r.Host}, "paths": {r.Path}}
	if r.Port > 0 || !d.TCP() {
		where["ports"] = []string{strconv.Itoa(r.Port)}
	}
	found, err := store.Routes.First(c.Tx, store.Query{Where: where})
	if store.IsNotFound(err) {
		if r.Host == "*" && d.OrgGUID == "" { // ManifestRouteUpdate: not even an admin's
			return nil, access.NotAuthorized()
		}
		return r, routes.Insert(c, r, d, requestOfRoute(r))
	}
	if err == nil && found.SpaceGUID != r.SpaceGUID && !slices.Contains(found.SharedSpaces, r.SpaceGUID) {
		return nil, errRouteElsewhere
	}
	return found, err
}

// mapHost maps a route with the host in the default domain, as if the manifest named it.
func mapHost(c *control.Session, app *cf.App, host string) error {
	space, err := store.Spaces.Get(c.Tx, app.SpaceGUID)
	if err != nil {
		return err
	}
	d, err := routes.DefaultDomain(c, space.OrgGUID)
	if err != nil {
		return control.Unprocessable(err, "No default domains available")
	}
	return mapURL(c, app, space, manifest.Route{URL: host + "." + d.Name})
}

var adjectives = strings.Fields("agile bold brave bright calm clear clever cool cosmic eager fast fine gentle glad grand happy kind lively lucky merry mild neat nice noble proud quick quiet rapid shiny silent smart smooth sunny swift tidy warm wise zesty")

var nouns = strings.Fields("anvil arch badger bear beaver bell bison bronze crane dome eagle ember falcon ferry flame forge fox gazelle hawk heron iron kettle lantern lark lynx otter panda puffin quartz raven robin salmon spark steel swan tiger tower turtle whale wombat zebra")

// randomWords names a random route: "swift-otter-xq".
func randomWords() string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	return pick(adjectives) + "-" + pick(nouns) + "-" + string(letters[rand.IntN(len(letters))]) + string(letters[rand.IntN(len(letters))])
}

func pick(words []string) string { return words[rand.IntN(len(words))] }

// requestOfRoute is what a manifest asks for of a route, as audit events show it (CC:
// actions/manifest_route_update.rb).
func requestOfRoute(r *cf.Route) audit.Data {
	var path, port any
	if r.Path != "" {
		path = r.Path
	}
	if r.Port > 0 {
		port = r.Port
	}
	return audit.Data{"host": r.Host, "path": path, "port": port, "options": nil}
}
