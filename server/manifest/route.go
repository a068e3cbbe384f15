package manifest

import (
	"slices"
	"strconv"
	"strings"

	"cupola/runtime/pattern"
)

// Route is a route by its URL.
type Route struct {
	URL      string
	Protocol string // "" : http1, or tcp of a TCP route
	Options  map[string]any
	// OptionsSet reports that options were given; if Options is nil they were
	// not a map.
	OptionsSet bool
}

// SplitURL reads a route's URL as Cloud Controller does (ManifestRoute.parse and
// valid?): a name with a dot, before it http://, https:// or, of a route with a port,
// tcp://. Queries and fragments do not count. The port is 0 for none.
func SplitURL(url string) (name string, port int, path string, ok bool) {
	scheme, rest, found := strings.Cut(strings.TrimSpace(url), "://")
	if !found {
		scheme, rest = "", strings.TrimSpace(url)
	}
	rest = rest[:strings.IndexAny(rest+"?", "?#")]
	slash := strings.Index(rest+"/", "/")
	name, path = rest[:slash], rest[slash:]
	name = name[strings.LastIndexByte(name, '@')+1:]
	name, digits, hasPort := strings.Cut(name, ":")
	if hasPort {
		n, err := strconv.ParseUint(digits, 10, 16)
		if err != nil {
			return "", 0, "", false
		}
		port = int(n)
	}
	if !found && !strings.Contains(name, ".") {
		return "", 0, "", false
	}
	return name, port, path, name != "" && schemes(hasPort)[strings.ToLower(scheme)]
}

// schemes are those of routes with and without a port.
func schemes(port bool) map[string]bool {
	if port {
		return map[string]bool{"": true, "tcp": true}
	}
	return map[string]bool{"": true, "http": true, "https": true}
}

// hostPattern is what a default route's host may consist of
// (AppApplyManifest.validate_name_dns_compliant!).
var hostPattern = pattern.Lazy(`^[A-Za-z0-9_-]+$`)

// DefaultHostFault says in Cloud Controller's words why an app's name cannot be the
// host of its default route; "" if it can.
func DefaultHostFault(name string) string {
	const prefix = "Failed to create default route from app name:"
	switch {
	case len([]rune(name)) > 63:
		return prefix + " Host cannot exceed 63 characters"
	case !hostPattern().MatchString(name):
		return prefix + ` Host must be either "*" or contain only alphanumeric characters, "_", or "-"`
	}
	return ""
}

const notRouteObjects = "Routes must be a list of route objects"

// readRoutes checks in the order of ManifestRoutesUpdateMessage: the objects, then
// each URL, then the protocols.
func (app *App) readRoutes(f *fields) {
	app.NoRoute, app.RandomRoute, app.DefaultRoute = f.routeFlag("no_route"), f.routeFlag("random_route"), f.routeFlag("default_route")
	v, given := f.m["routes"]
	if !given {
		return
	}
	list, ok := v.([]any)
	if !ok {
		f.fault(notRouteObjects)
		return
	}
	app.RoutesSet = true
	if !f.atMost("routes", len(list), maxRoutes) {
		return
	}
	for _, v := range list {
		m, _ := v.(map[string]any)
		url, ok := m["route"].(string)
		if !ok || strings.TrimSpace(url) == "" {
			f.fault(notRouteObjects)
			app.Routes = nil
			return
		}
		r := Route{URL: url}
		r.Protocol, _ = m["protocol"].(string)
		_, r.OptionsSet = m["options"]
		r.Options, _ = m["options"].(map[string]any)
		app.Routes = append(app.Routes, r)
	}
	for _, r := range app.Routes {
		if _, _, _, ok := SplitURL(r.URL); !ok {
			f.fault("The route '" + r.URL + "' is not a properly formed URL")
		}
	}
	for _, v := range list {
		m, _ := v.(map[string]any)
		if !slices.Contains([]any{nil, "http1", "http2", "tcp"}, m["protocol"]) {
			f.fault("Route protocol must be 'http1', 'http2' or 'tcp'.")
		}
	}
}

// routeFlag reads a boolean whose message has the key's hyphen.
func (f *fields) routeFlag(key string) bool {
	v := f.m[key]
	b, ok := v.(bool)
	if !ok && v != nil {
		f.fault(strings.ReplaceAll(title(key), " ", "-") + " must be a boolean")
	}
	return b
}
