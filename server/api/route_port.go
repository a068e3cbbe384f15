package api

import (
	"cupola/store/cf"
)

func listRouterGroups(c *call) (*response, error) {
	groups := []doc{}
	if len(c.Platform.TCPPorts) > 0 {
		groups = append(groups, doc{"guid": cf.DefaultTCPGUID, "name": cf.DefaultTCP, "type": "tcp", "reservable_ports": c.Platform.TCPPorts.String()})
	}
	if name := c.Request.URL.Query().Get("name"); name != "" && (len(groups) == 0 || name != cf.DefaultTCP) {
		// The routing API's own words and form.
		return &response{status: 404, body: doc{"name": "ResourceNotFoundError", "message": "Router Group '" + name + "' not found"}}, nil
	}
	return ok(groups)
}
