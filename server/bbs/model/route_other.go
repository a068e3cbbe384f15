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
