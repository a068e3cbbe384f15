package api

import (
	"net"
	"strings"
)

// showRoot is the one document that `cf api` reads. Everything is served by
// one listener: each link names the host that the client used.
func showRoot(c *call) (*response, error) {
	links := doc{
		"self":                c.link(""),
		"cloud_controller_v2": nil,
		"cloud_controller_v3": doc{"href": c.url("/v3"), "meta": doc{"version": Version}},
		"network_policy_v0":   nil,
		"network_policy_v1":   c.link("/networking/v1/external"),
		"login":               c.link(""),
		"uaa":                 c.link(""),
		"credhub":             nil,
		"routing":             routing(c),
		"logging":             doc{"href": strings.Replace(c.systemURL("doppler"), "http", "ws", 1)},
		"log_cache":           c.link(""),
		"log_stream":          doc{"href": c.systemURL("log-stream")},
		"app_ssh":             nil,
	}
	if ssh := c.s.SSH; ssh.Address != "" {
		links["app_ssh"] = doc{"href": sshAddress(c), "meta": doc{"host_key_fingerprint": ssh.HostKeyFingerprint, "oauth_client": ssh.ClientID}}
	}
	return ok(doc{"links": links})
}

// systemURL is the URL of a host of the system, with the client's scheme and port.
func (c *call) systemURL(host string) string {
	scheme, _, _ := strings.Cut(c.base(), "://")
	name := host + "." + c.s.SystemDomain()
	if _, port, err := net.SplitHostPort(c.Request.Host); err == nil {
		name = net.JoinHostPort(name, port)
	}
	return scheme + "://" + name
}

// routing is where router groups are listed, where there are any.
func routing(c *call) any {
	if len(c.s.TCPPorts) == 0 {
		return nil
	}
	return c.link("/routing")
}

func showV3(c *call) (*response, error) {
	links := doc{"self": c.link("/v3")}
	for _, name := range []string{"app_usage_events", "apps", "audit_events", "builds", "buildpacks", "deployments", "domains", "droplets", "environment_variable_groups",
		"feature_flags", "info", "isolation_segments", "organizations", "organization_quotas", "packages", "processes", "resource_matches", "roles", "routes",
		"security_groups", "service_brokers", "service_instances", "service_credential_bindings", "service_offerings", "service_plans", "service_route_bindings", "service_usage_events",
		"sidecars", "spaces", "space_quotas", "stacks", "tasks", "users"} {
		links[name] = c.link("/v3/%s", name)
	}
	return ok(doc{"links": links})
}

// osbapiVersion is the version of the Open Service Broker API.
const osbapiVersion = "2.17"

func showInfo(c *call) (*response, error) {
	return ok(doc{
		"build": "", "name": "cupola", "version": 0, "description": "Cloud Foundry on one machine",
		"cli_version":    doc{"minimum": "", "recommended": ""},
		"custom":         doc{},
		"osbapi_version": osbapiVersion,
		"rate_limits":    doc{"enabled": false, "general_limit": 2000, "reset_interval_in_minutes": 60}, // CC: config/cloud_controller.yml
		"links":          doc{"self": c.link("/v3/info"), "support": doc{"href": ""}},
	})
}

// sshAddress is the proxy's host and port: it is reached at the host that the
// client used for the API.
func sshAddress(c *call) string {
	_, port, _ := net.SplitHostPort(c.s.SSH.Address)
	host := c.Request.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}
