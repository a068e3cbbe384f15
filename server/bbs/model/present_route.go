package model

import (
	"encoding/json"
	"maps"
	"strings"

	"cupola/runtime/contract"
	"cupola/server/desire"
)

// presentRoutes is what Cloud Controller writes for Diego's routers: an entry for each
// route, and a list for each router, empty or not (CC: diego/app_recipe_builder.rb,
// diego/protocol/routing_info.rb). There is no diego-ssh route: no container of an app
// has an sshd that listens.
func presentRoutes(app desire.App) map[string][]byte {
	http, tcp, internal := []appHTTPRoute{}, []appTCPRoute{}, []appInternalRoute{}
	for _, r := range app.Routes {
		switch {
		case r.Domain.Internal:
			internal = append(internal, appInternalRoute{r.Host + "." + r.Domain.Name})
		case r.Domain.TCP():
			tcp = append(tcp, appTCPRoute{r.Domain.RouterGroupGUID, TCPRoute{ExternalPort: r.Route.Port, ContainerPort: int(portOf(app, r))}})
		default:
			http = append(http, presentHTTPRoute(app, r))
		}
	}
	routes := map[string][]byte{}
	for key, list := range map[string]any{cfRouter: http, tcpRouter: tcp, internalRouter: internal} {
		if text, err := json.Marshal(list); err == nil { // options come from JSON
			routes[key] = text
		}
	}
	return routes
}

// appHTTPRoute is an entry of cf-router, as Cloud Controller writes it.
type appHTTPRoute struct {
	Hostnames  []string       `json:"hostnames"`
	Port       uint16         `json:"port"`
	ServiceURL *string        `json:"route_service_url"`
	Segment    *string        `json:"isolation_segment"`
	Protocol   string         `json:"protocol"`
	Options    map[string]any `json:"options,omitempty"`
}

// appTCPRoute is an entry of tcp-router.
type appTCPRoute struct {
	RouterGroupGUID string `json:"router_group_guid"`
	TCPRoute
}

// appInternalRoute is an entry of internal-router.
type appInternalRoute struct {
	Hostname string `json:"hostname"`
}

func presentHTTPRoute(app desire.App, r desire.AppRoute) appHTTPRoute {
	one := appHTTPRoute{Hostnames: []string{desire.URI(r.Route, r.Domain)}, Port: portOf(app, r), ServiceURL: orNil(r.ServiceURL), Segment: orNil(app.Segment),
		Protocol: r.Protocol, Options: r.Options}
	if !r.Domain.EnforcesPolicies {
		return one
	}
	one.Options = map[string]any{}
	maps.Copy(one.Options, r.Options)
	if r.Domain.PoliciesScope != "" {
		one.Options["route_policy_scope"] = r.Domain.PoliciesScope
	}
	if len(r.Sources) > 0 {
		one.Options["route_policy_sources"] = strings.Join(r.Sources, ",")
	}
	return one
}

// portOf is the port of the container that a route leads to.
func portOf(app desire.App, r desire.AppRoute) uint16 {
	switch {
	case r.ToPort != 0:
		return r.ToPort
	case len(app.Ports) > 0:
		return app.Ports[0]
	}
	return contract.DefaultPort
}

func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
