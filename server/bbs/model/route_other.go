package model

import (
	"encoding/json"
	"strings"

	"cupola/server/bbs/bbspb"
)

// The keys of other routers in a DesiredLRP's routes.
const (
	internalRouter = "internal-router"
	tcpRouter      = "tcp-router"
	diegoSSH       = "diego-ssh"
)

// InternalHosts are the names by which containers find a DesiredLRP's instances,
// in lower case (bbs: models/internal_routes.go). What is not written as it
// should be is none.
func InternalHosts(d *bbspb.DesiredLRP) (hosts []string) {
	var entries []struct {
		Hostname string `json:"hostname"`
	}
	if err := json.Unmarshal(d.GetRoutes().GetRoutes()[internalRouter], &entries); err != nil {
		return nil
	}
	for _, e := range entries {
		if e.Hostname != "" {
			hosts = append(hosts, strings.ToLower(e.Hostname))
		}
	}
	return hosts
}

// TCPRoute is a port of the TCP router that leads to a port of a DesiredLRP's
// instances; the names are Diego's (routing-info: tcp_routes/routes_helper.go).
// Every router group has the same ports here.
type TCPRoute struct {
	ExternalPort  int `json:"external_port"`
	ContainerPort int `json:"container_port"`
}

// TCPRoutes are those of a DesiredLRP. What is not written as it should be is
// none.
func TCPRoutes(d *bbspb.DesiredLRP) (list []TCPRoute) {
	var entries []TCPRoute
	if err := json.Unmarshal(d.GetRoutes().GetRoutes()[tcpRouter], &entries); err != nil {
		return nil
	}
	const last = 1<<16 - 1
	for _, e := range entries {
		if e.ExternalPort > 0 && e.ExternalPort <= last && e.ContainerPort > 0 && e.ContainerPort <= last {
			list = append(list, e)
		}
	}
	return list
}

// SSHRoute says how the sshd of a DesiredLRP's instances is entered; the names are
// Diego's (diego-ssh: routes/diego_ssh.go).
type SSHRoute struct {
	ContainerPort   uint16 `json:"container_port"`
	HostFingerprint string `json:"host_fingerprint,omitempty"`
	User            string `json:"user,omitempty"`
	Password        string `json:"password,omitempty"`
	PrivateKey      string `json:"private_key,omitempty"`
}

// SSH is the SSH route of a DesiredLRP, and whether it has one.
func SSH(d *bbspb.DesiredLRP) (r SSHRoute, ok bool) {
	err := json.Unmarshal(d.GetRoutes().GetRoutes()[diegoSSH], &r)
	return r, err == nil && r.ContainerPort != 0
}
