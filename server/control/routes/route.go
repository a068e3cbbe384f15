package routes

import (
	"strings"

	"cupola/runtime/pattern"
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/server/control/quota"
	"cupola/server/control/services"
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

var hostPattern = pattern.Lazy(`^([A-Za-z0-9_-]+|\*)?$`)

// faults are Cloud Controller's messages for a host and path.
func faults(host, path string) []string {
	return control.Must(len(host) <= 63, "Host is too long (maximum is 63 characters)",
		len(host) > 63 || hostPattern().MatchString(host), `Host must be either "*" or contain only alphanumeric characters, "_", or "-"`,
		path == "" || strings.HasPrefix(path, "/"), "Path must begin with /",
		!strings.Contains(path, "?"), "Path cannot contain ?",
		path != "/", "Path cannot be exactly /",
		len(path) <= 128, "Path is too long (maximum is 128 characters)")
}

// modelFault is what is wrong with a route's host or path, in the words of Cloud
// Controller's model, which manifests show (RouteCreate.validation_error!); "" for
// nothing.
func modelFault(r *cf.Route, d *cf.Domain) string {
	switch {
	case len(r.Host) <= 63 && !hostPattern().MatchString(r.Host):
		return "Host format is invalid."
	case r.Path != "" && d.Internal:
		return "Paths are not supported for internal domains."
	case !uriPath().MatchString(r.Path):
		return "Path is invalid."
	case len(r.Path) > 128:
		return "Path exceeds 128 characters."
	case r.Path == "/":
		return "Path cannot be a single '/'."
	case r.Path != "" && r.Path[0] != '/':
		return "Path is missing the beginning '/'."
	case strings.Contains(r.Path, "?"):
		return "Path cannot contain '?'."
	case len(r.Host) > 63:
		return "host must be no more than 63 characters"
	}
	return ""
}

// uriPath is what Ruby takes for a path in a URI, also with a query or fragment
// (UriUtils.is_uri?).
var uriPath = pattern.Lazy(`^(?:[A-Za-z0-9_.!~*'()/;:@&=+$,?#-]|%[0-9A-Fa-f]{2})*$`)

// usableDomain is a domain in which a space can have routes.
func usableDomain(c *control.Session, guid string, space *cf.Space) (*cf.Domain, error) {
	d, err := store.Domains.First(c.Tx, store.Query{Where: map[string][]string{"guids": {guid}, "usable_by_organization_guids": {space.OrgGUID}}})
	return d, control.Unprocessable(err, "Invalid domain. Ensure that the domain exists and you have access to it.")
}

// Insert adds a route, or says in Cloud Controller's words why it can't. The request for
// it is as audit events show it.
func Insert(c *control.Session, r *cf.Route, d *cf.Domain, request audit.Data) error {
	if err := c.Feature("route_creation"); err != nil {
		return err
	}
	if fault := modelFault(r, d); fault != "" {
		return cf.Unprocessable("%s", fault)
	}
	if err := checkPort(c, r, d); err != nil {
		return err
	}
	if err := hostFits(c, r, d); err != nil {
		return err
	}
	if err := routeFree(c, r, d); err != nil {
		return err
	}
	err := quota.Within(c, r.SpaceGUID, quota.Routes, func() error { return store.Routes.Insert(c.Tx, r) })
	if store.IsTaken(err) {
		return alreadyThere(c, r, d)
	}
	if err != nil {
		return err
	}
	return eventIn(c, audit.RouteCreate, r, r.SpaceGUID, c.Request(request))
}

// hostFits refuses a host and path that a route in the domain cannot have.
func hostFits(c *control.Session, r *cf.Route, d *cf.Domain) error {
	switch {
	case r.Host == "*" && d.OrgGUID == "" && !c.Actor.Admin:
		return cf.Unprocessable("You do not have sufficient permissions to create a route with a wildcard host on a domain not scoped to an organization.")
	case r.Host == "*" && d.Internal:
		return cf.Unprocessable("Wildcard hosts are not supported for internal domains.")
	case r.Path != "" && d.Internal:
		return cf.Unprocessable("Paths are not supported for internal domains.")
	case r.Host == "" && d.OrgGUID == "" && !d.TCP():
		return cf.Unprocessable("Missing host. Routes in shared domains must have a host defined.")
	case len(fqdn(r, d)) > 253:
		return cf.Unprocessable("Host combined with domain name must be no more than 253 characters.")
	}
	return nil
}

func alreadyThere(c *control.Session, r *cf.Route, d *cf.Domain) error {
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

// eventIn records an event of a route in a space.
func eventIn(c *control.Session, kind audit.Type, r *cf.Route, spaceGUID string, data audit.Data) error {
	space, err := store.Spaces.Get(c.Tx, spaceGUID)
	if err != nil {
		return err
	}
	return c.Audit(kind, audit.Target{Type: "route", GUID: r.GUID, Name: r.Host, Place: access.At(space)}, data)
}

// Remove deletes a route.
func Remove(c *control.Session, r *cf.Route) error {
	if err := Drop(c, r); err != nil {
		return err
	}
	return eventIn(c, audit.RouteDelete, r, r.SpaceGUID, c.Request(audit.Data{"recursive": true}))
}

// Drop deletes a route, and its binding to a service.
func Drop(c *control.Session, r *cf.Route) error {
	bound, err := store.RouteBindings.By(c.Tx, "route_guids", r.GUID)
	if err != nil {
		return err
	}
	for _, b := range bound {
		i, err := store.ServiceInstances.Get(c.Tx, b.InstanceGUID)
		if err != nil {
			return err
		}
		if i.Type == cf.Managed {
			if err := services.Abandon(c, i, b.GUID); err != nil {
				return err
			}
		}
		if err := services.RemoveRouteBinding(c, b, i); err != nil {
			return err
		}
	}
	return store.Routes.Delete(c.Tx, r.GUID)
}
