package acme

import (
	"net/netip"
	"slices"
	"strings"

	"cupola/store"
	"cupola/store/cf"
)

// publicHosts are the system's hosts that clients meet.
var publicHosts = []string{"api", "console", "doppler", "log-cache", "log-stream", "login", "uaa"}

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

// names returns the names to get certificates for, sorted: those of routes that lead to
// an app, and the system's. Wildcards can only be proven by DNS records; then all hosts of
// a domain share one.
func names(tx *store.Tx, system string, wildcards bool) ([]string, error) {
	wanted := map[string]bool{}
	want := func(host, domain string) {
		if wildcards && host != "" {
			host = "*"
		}
		wanted[strings.ToLower(strings.TrimPrefix(host+"."+domain, "."))] = true
	}
	for _, host := range publicHosts {
		want(host, system)
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
		want(r.Host, d.Name)
	}
	var all []string
	for name := range wanted {
		if isPublic(strings.TrimPrefix(name, "*.")) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all, nil
}
