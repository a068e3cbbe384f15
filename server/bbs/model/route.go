package model

import (
	"encoding/json"
	"strings"

	"cupola/server/bbs/bbspb"
)

// cfRouter is the key of the HTTP router in a DesiredLRP's routes.
const cfRouter = "cf-router"

// cfRoute is one entry of it; the names are Cloud Controller's.
type cfRoute struct {
	Hostnames []string       `json:"hostnames"`
	Port      uint32         `json:"port"`
	Protocol  string         `json:"protocol,omitempty"`
	Service   string         `json:"route_service_url,omitempty"`
	Segment   string         `json:"isolation_segment,omitempty"`
	Options   map[string]any `json:"options,omitempty"`
}

// Route is a name that leads to a port of a DesiredLRP's instances.
type Route struct {
	Host     string
	Path     string // "" or "/x"
	Port     uint16 // of the container
	Protocol string // "http1" or "http2"
	// ServiceURL is the route service that requests go to first; "" for none.
	ServiceURL string
	// Segment is the isolation segment whose routers serve the route; "" is the
	// shared one.
	Segment string
	Options map[string]any
}

// Routes are the routes of a DesiredLRP that the HTTP router serves. What is
// not written as it should be is none.
func Routes(d *bbspb.DesiredLRP) (list []Route) {
	var entries []cfRoute
	if err := json.Unmarshal(d.GetRoutes().GetRoutes()[cfRouter], &entries); err != nil {
		return nil
	}
	for _, e := range entries {
		if e.Port == 0 || e.Port > 65535 {
			continue
		}
		protocol := "http1"
		if e.Protocol == "http2" {
			protocol = e.Protocol
		}
		for _, name := range e.Hostnames {
			host, path, hasPath := strings.Cut(strings.ToLower(name), "/")
			if hasPath && path != "" {
				_, path, _ = strings.Cut(name, "/") // only hosts are without case
				path = "/" + path
			}
			if host != "" {
				list = append(list, Route{Host: host, Path: path, Port: uint16(e.Port), Protocol: protocol, ServiceURL: e.Service, Segment: e.Segment, Options: e.Options})
			}
		}
	}
	return list
}
