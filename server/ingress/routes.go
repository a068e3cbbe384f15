package ingress

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/server/router"
	"cupola/store/cf"
)

// table leads the routes to the instances that are running, ready and not
// stopping. A route without any has no endpoints; one without destinations is
// left out, since it is not mapped to an app. Internal domains have no routes
// here.
func (r *rows) table() (t router.Table) {
	domains := map[string]*cf.Domain{}
	for _, d := range r.domains {
		domains[d.GUID] = d
		if d.EnforcesPolicies {
			t.Guarded = append(t.Guarded, d.Name)
		}
	}
	served, services, sources, segments := r.served(), r.serviceURLs(), r.sources(), r.segments()
	for _, of := range r.routes {
		d := domains[of.DomainGUID]
		if d == nil || d.Internal || len(of.Destinations) == 0 {
			continue
		}
		one := router.Route{Port: of.Port, Host: strings.TrimPrefix(of.Host+"."+d.Name, "."), Path: of.Path, AppGUID: of.Destinations[0].AppGUID,
			Options: options(of.Options), ServiceURL: services[of.GUID]}
		one.AppGUIDs = appsOf(of.Destinations)
		if d.EnforcesPolicies {
			one.Policy = &router.Policy{Scope: d.PoliciesScope, Sources: sources[of.GUID], Places: r.places}
		}
		for _, to := range of.Destinations {
			for _, a := range served[service{to.AppGUID, desire.ProcessType(to)}] {
				e := endpoint(a, portOf(to, a), to.AppGUID, desire.CFProcess(a.ProcessGUID), cmp.Or(to.Protocol, "http1"))
				e.Segment = segments[e.ProcessGUID]
				one.Endpoints = append(one.Endpoints, e)
			}
		}
		t.Routes = append(t.Routes, one)
	}
	addDesired(&t, r.desired, r.instances)
	addDesiredTCP(&t, r.desired, r.instances)
	return t
}

// appsOf are the apps that a route leads to, if these are several.
func appsOf(destinations []cf.Destination) (guids []string) {
	for _, to := range destinations {
		if !slices.Contains(guids, to.AppGUID) {
			guids = append(guids, to.AppGUID)
		}
	}
	if len(guids) < 2 {
		return nil
	}
	return guids
}

// segments are the isolation segments of processes, by GUID.
func (r *rows) segments() map[string]string {
	of := map[string]string{}
	for _, p := range r.processes {
		if p.Placement.Segment != "" {
			of[p.GUID] = p.Placement.Segment
		}
	}
	return of
}

// serviceURLs are those of the route services by the GUIDs of their routes.
func (r *rows) serviceURLs() map[string]string {
	urls := map[string]string{}
	for _, b := range r.services {
		if !b.LastOperation.Is(cf.OpCreate, cf.OpInitial, cf.OpInProgress, cf.OpFailed) {
			urls[b.RouteGUID] = b.RouteServiceURL
		}
	}
	return urls
}

func endpoint(a *lrp.Actual, port uint16, appGUID, processGUID, protocol string) router.Endpoint {
	e := router.Endpoint{Address: net.JoinHostPort(a.Address, strconv.Itoa(int(port))), AppGUID: appGUID, ProcessGUID: processGUID,
		InstanceGUID: a.InstanceGUID, Index: a.Index, Protocol: protocol}
	if a.TLSPorts {
		e.TLSAddress = tlsAddress(a, port)
	}
	return e
}

// tlsAddress is where a port of an instance is reached by TLS; "" for a port that the
// instance did not say it has.
func tlsAddress(a *lrp.Actual, port uint16) string {
	for _, m := range a.PortMappings() {
		if m.Port == port && !m.IsInternal() {
			return net.JoinHostPort(a.Address, strconv.Itoa(int(m.TLSPort)))
		}
	}
	return ""
}

// portOf is the port of an instance that a destination leads to: the first that it
// listens on unless the route says otherwise.
func portOf(to cf.Destination, a *lrp.Actual) uint16 {
	switch {
	case to.Port != 0:
		return uint16(to.Port)
	case len(a.Ports) > 0:
		return a.Ports[0]
	}
	return contract.DefaultPort
}

// options are the options of a route as the API has them. An invalid hash_balance
// counts as none.
func options(of map[string]any) (o router.Options) {
	o.LoadBalancing, _ = of["loadbalancing"].(string)
	o.HashHeader, _ = of["hash_header"].(string)
	o.HashBalance, _ = strconv.ParseFloat(fmt.Sprint(of["hash_balance"]), 64)
	return o
}
