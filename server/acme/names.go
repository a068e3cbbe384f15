package acme

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"cupola/store"
	"cupola/store/cf"
)

// publicHosts are the system's hosts that clients meet.
var publicHosts = []string{"api", "autoscaler", "console", "doppler", "log-cache", "log-stream", "login", "scheduler", "uaa"}

// reserved are the top-level domains that no public CA signs names of (RFC 2606, RFC
// 6761, RFC 6762, RFC 7686, RFC 8375, and ICANN's .internal).
var reserved = []string{"localhost", "local", "internal", "test", "invalid", "onion", "arpa", "lan", "home", "corp"}

// isPublic reports whether a public CA may sign a name. Hosts of routes may have an
// underscore, which names of certificates must not (CA/Browser Forum, ballot SC12).
func isPublic(name string) bool {
	if _, err := netip.ParseAddr(name); err == nil || !strings.Contains(name, ".") || strings.Contains(name, "_") {
		return false
	}
	return !slices.Contains(reserved, name[strings.LastIndexByte(name, '.')+1:])
}

// wanted is a name to get a certificate for.
type wanted struct {
	name string
	org  string // whose route has it; "": it is the system's
}

// names returns the names to get certificates for, sorted: those of routes that lead to
// an app, and the system's. Wildcards can only be proven by DNS records; then all hosts of
// a domain share one.
func names(tx *store.Tx, system string, wildcards bool) ([]wanted, error) {
	owners := map[string]string{}
	want := func(host, domain, org string) {
		if wildcards && host != "" {
			host = "*"
		}
		name := strings.ToLower(strings.TrimPrefix(host+"."+domain, "."))
		if _, known := owners[name]; !known && isPublic(strings.TrimPrefix(name, "*.")) {
			owners[name] = org
		}
	}
	for _, host := range publicHosts {
		want(host, system, "")
	}
	orgs, err := orgsOfSpaces(tx)
	if err != nil {
		return nil, err
	}
	domains, err := store.Domains.All(tx)
	if err != nil {
		return nil, err
	}
	of := map[string]*cf.Domain{}
	for _, d := range domains {
		of[d.GUID] = d
	}
	routes, err := store.Routes.All(tx)
	if err != nil {
		return nil, err
	}
	for _, r := range routes {
		d := of[r.DomainGUID]
		if d == nil || d.Internal || d.TCP() || len(r.Destinations) == 0 || r.Host == "*" && !wildcards {
			continue
		}
		want(r.Host, d.Name, orgs[r.SpaceGUID])
	}
	var all []wanted
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		all = append(all, wanted{name, owners[name]})
	}
	return all, nil
}

// orgsOfSpaces are the orgs by their spaces.
func orgsOfSpaces(tx *store.Tx) (map[string]string, error) {
	spaces, err := store.Spaces.All(tx)
	orgs := map[string]string{}
	for _, s := range spaces {
		orgs[s.GUID] = s.OrgGUID
	}
	return orgs, err
}
