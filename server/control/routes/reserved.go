package routes

import (
	"strings"

	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// suffixes are the names of two labels and more that a name ends with, itself
// included.
func suffixes(name string) (list []string) {
	for strings.Contains(name, ".") {
		list = append(list, name)
		_, name, _ = strings.Cut(name, ".")
	}
	return list
}

// domainFree refuses a domain of the system's hosts, within another org's, around
// another org's, or where a route leads.
func domainFree(c *control.Session, d *cf.Domain) error {
	if cf.ReservedName(d.Name, c.Platform.SystemDomain()) {
		return domainReserved(d, d.Name, "the system")
	}
	if d.Name == cf.ServicesDomain || strings.HasSuffix(d.Name, "."+cf.ServicesDomain) {
		return domainReserved(d, cf.ServicesDomain, "the built-in services")
	}
	for _, name := range suffixes(d.Name) {
		if err := suffixFree(c, d, name); err != nil {
			return err
		}
	}
	if d.OrgGUID == "" {
		return nil
	}
	all, err := store.Domains.All(c.Tx)
	for _, other := range all {
		if other.OrgGUID != d.OrgGUID && strings.HasSuffix(other.Name, "."+d.Name) {
			return domainReserved(d, other.Name, "another domain")
		}
	}
	return err
}

// suffixFree looks who has a name that a domain's name ends with.
func suffixFree(c *control.Session, d *cf.Domain, name string) error {
	other, err := domainNamed(c, name)
	if err != nil {
		return err
	}
	if other != nil && other.OrgGUID != "" && other.OrgGUID != d.OrgGUID {
		return domainReserved(d, name, "another domain")
	}
	host, parent, _ := strings.Cut(name, ".")
	if other, err = domainNamed(c, parent); err != nil || other == nil {
		return err
	}
	n, err := store.Routes.Count(c.Tx, store.Query{Where: map[string][]string{"domain_guids": {other.GUID}, "hosts": {host}}})
	if err == nil && n > 0 {
		err = domainReserved(d, name, "a route")
	}
	return err
}

func domainReserved(d *cf.Domain, name, by string) error {
	return cf.Unprocessable(`The domain name "%s" cannot be created because "%s" is already reserved by %s`, d.Name, name, by)
}

// domainNamed is the domain of a name; nil when there is none.
func domainNamed(c *control.Session, name string) (*cf.Domain, error) {
	d, err := store.Domains.First(c.Tx, store.Query{Where: map[string][]string{"names": {name}}})
	if store.IsNotFound(err) {
		return nil, nil
	}
	return d, err
}

// routeFree refuses a route whose name a domain or the system has, or another
// space: with a path it would take over requests to that space's app.
func routeFree(c *control.Session, r *cf.Route, d *cf.Domain) error {
	if d.TCP() {
		return nil // its port is its name
	}
	if cf.ReservedName(fqdn(r, d), c.Platform.SystemDomain()) {
		return cf.Unprocessable("Route conflicts with a reserved system route.")
	}
	if r.Host != "" {
		if other, err := domainNamed(c, fqdn(r, d)); err != nil || other != nil {
			return control.OrElse(err, cf.Unprocessable("Route conflicts with domain '%s'.", fqdn(r, d)))
		}
	}
	if d.OrgGUID != "" {
		return nil
	}
	same, err := store.Routes.Matching(c.Tx, store.Query{Where: map[string][]string{"domain_guids": {d.GUID}, "hosts": {r.Host}}})
	for _, other := range same {
		if other.SpaceGUID != r.SpaceGUID && other.Path != r.Path {
			return cf.Unprocessable("Routes for this host and domain have been reserved for another space.")
		}
	}
	return err
}
