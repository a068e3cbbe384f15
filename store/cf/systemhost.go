package cf

import (
	"slices"
	"strings"
)

// systemHosts are the host names below the system's domain that no tenant may
// have: the defaults of Cloud Controller's cc.system_hostnames (api, uaa, login,
// doppler, loggregator, hm9000), and those that cf-deployment's other components
// and cupola's own faces answer at.
var systemHosts = []string{"api", "autoscaler", "console", "credhub", "doppler", "hm9000", "log-cache", "log-stream", "loggregator", "login", "scheduler", "ssh", "uaa"}

// SystemNames returns the system hosts of a domain.
func SystemNames(systemDomain string) []string {
	names := make([]string, len(systemHosts))
	for i, host := range systemHosts {
		names[i] = host + "." + systemDomain
	}
	return names
}

// IsSystemHost reports whether name is a system host of a domain. Case and a dot
// at the end do not matter.
func IsSystemHost(name, systemDomain string) bool {
	host, found := strings.CutSuffix(strings.ToLower(strings.TrimSuffix(name, ".")), "."+systemDomain)
	return found && slices.Contains(systemHosts, host)
}

// ServicesDomain is the internal domain in which instances of the built-in broker have their names. No domain may be made of it or in it.
const ServicesDomain = "services.internal"

// ReservedName reports whether name is a system host of a domain, or below one:
// who has x.uaa.example.com could set cookies of uaa.example.com.
func ReservedName(name, systemDomain string) bool {
	host, found := strings.CutSuffix(strings.ToLower(strings.TrimSuffix(name, ".")), "."+systemDomain)
	return found && slices.Contains(systemHosts, host[strings.LastIndexByte(host, '.')+1:])
}
