package desire

import (
	"net"
	"strconv"
	"strings"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// RouteEntry leads a host and path to the instances that serve it.
type RouteEntry struct {
	Port      int    // of a TCP route, which has no host and path; else 0
	Host      string // "app.example.com", "*.example.com"
	Path      string // "" or "/x"
	AppGUID   string // of the first destination; "" when there is none
	Options   map[string]any
	Endpoints []Endpoint
	// ServiceURL is that of the route service that is bound to it; "" for none.
	ServiceURL string
	// Policies are those of a route in a domain that enforces them; nil for others.
	Policies *Policies
}

// Policies say who may call a route.
type Policies struct {
	Scope   string // of the domain
	Sources []string
}

// Endpoint is an instance that serves a route.
type Endpoint struct {
	Address      string // "ip:port"
	Protocol     string // "http1", "http2" or "tcp"
	AppGUID      string
	ProcessGUID  string // the process' GUID in Cloud Foundry's sense
	InstanceGUID string
	Index        int
}

// RoutesIn is what the routes depend on. Instances may be all there are: those
// that must get no request are passed over.
type RoutesIn struct {
	Routes    []*cf.Route
	Domains   []*cf.Domain
	Processes []*cf.Process
	Instances []*lrp.Actual
	Services  []*cf.RouteBinding
	Policies  []*cf.RoutePolicy
}

// Routes are the routes with the instances that are running, ready and not
// stopping. A route without any has no endpoints; one without destinations is
// left out, since it is not mapped to an app. Internal domains have no routes
// here.
func Routes(in RoutesIn) []RouteEntry {
	domains := map[string]*cf.Domain{}
	for _, d := range in.Domains {
		domains[d.GUID] = d
	}
	served, services, sources := in.served(), in.services(), in.sources()
	var entries []RouteEntry
	for _, r := range in.Routes {
		d := domains[r.DomainGUID]
		if d == nil || d.Internal || len(r.Destinations) == 0 {
			continue
		}
		e := RouteEntry{Port: r.Port, Host: strings.TrimPrefix(r.Host+"."+d.Name, "."), Path: r.Path, AppGUID: r.Destinations[0].AppGUID, Options: r.Options, ServiceURL: services[r.GUID]}
		if d.EnforcesPolicies {
			e.Policies = &Policies{Scope: d.PoliciesScope, Sources: sources[r.GUID]}
		}
		for _, to := range r.Destinations {
			e.Endpoints = append(e.Endpoints, endpoints(to, served[service{to.AppGUID, ProcessType(to)}])...)
		}
		entries = append(entries, e)
	}
	return entries
}

// InternalNames are the internal domains, and by the names in them that routes
// have the instances that Routes would lead to. All are in lower case.
func InternalNames(in RoutesIn) (zones []string, names map[string][]*lrp.Actual) {
	domains, names := map[string]string{}, map[string][]*lrp.Actual{}
	for _, d := range in.Domains {
		if d.Internal {
			domains[d.GUID] = strings.ToLower(d.Name)
			zones = append(zones, domains[d.GUID])
		}
	}
	var served map[service][]*lrp.Actual
	for _, r := range in.Routes {
		zone, ok := domains[r.DomainGUID]
		if !ok {
			continue
		}
		if served == nil {
			served = in.served()
		}
		name, seen := strings.ToLower(r.Host)+"."+zone, map[service]bool{}
		for _, to := range r.Destinations {
			s := service{to.AppGUID, ProcessType(to)}
			if !seen[s] { // by several ports
				names[name] = append(names[name], served[s]...)
			}
			seen[s] = true
		}
	}
	return zones, names
}

// service is what a destination leads to.
type service struct{ appGUID, processType string }

// ProcessType of a destination is web, unless it says otherwise.
func ProcessType(d cf.Destination) string {
	if d.ProcessType == "" {
		return "web"
	}
	return d.ProcessType
}

// services are the URLs of the route services by the GUIDs of their routes.
func (in RoutesIn) services() map[string]string {
	urls := map[string]string{}
	for _, b := range in.Services {
		if !b.LastOperation.Is(cf.OpCreate, cf.OpInitial, cf.OpInProgress, cf.OpFailed) {
			urls[b.RouteGUID] = b.RouteServiceURL
		}
	}
	return urls
}

// sources are those of the policies by the GUIDs of their routes.
func (in RoutesIn) sources() map[string][]string {
	sources := map[string][]string{}
	for _, p := range in.Policies {
		sources[p.RouteGUID] = append(sources[p.RouteGUID], p.Source)
	}
	return sources
}

// served gives the routable instances of each service.
func (in RoutesIn) served() map[service][]*lrp.Actual {
	of := map[string]*cf.Process{}
	for _, p := range in.Processes {
		of[p.GUID] = p
	}
	served := map[service][]*lrp.Actual{}
	for _, a := range in.Instances {
		p := of[CFProcess(a.ProcessGUID)]
		if p == nil || !a.Routable() {
			continue
		}
		s := service{p.AppGUID, p.Type}
		served[s] = append(served[s], a)
	}
	return served
}

func endpoints(to cf.Destination, instances []*lrp.Actual) []Endpoint {
	protocol := to.Protocol
	if protocol == "" {
		protocol = "http1"
	}
	var list []Endpoint
	for _, a := range instances {
		port := uint16(to.Port)
		if port == 0 {
			port = firstPort(a)
		}
		list = append(list, Endpoint{
			Address: net.JoinHostPort(a.Address, itoa(port)), Protocol: protocol,
			AppGUID: to.AppGUID, ProcessGUID: CFProcess(a.ProcessGUID), InstanceGUID: a.InstanceGUID, Index: a.Index,
		})
	}
	return list
}

// firstPort is the one that an instance listens on unless a route says
// otherwise.
func firstPort(a *lrp.Actual) uint16 {
	if len(a.Ports) > 0 {
		return a.Ports[0]
	}
	return contract.DefaultPort
}

// URI is the name of a route as VCAP_APPLICATION has it.
func URI(r *cf.Route, d *cf.Domain) string {
	if r.Port > 0 {
		return d.Name + ":" + strconv.Itoa(r.Port)
	}
	return strings.TrimPrefix(r.Host+"."+d.Name, ".") + r.Path
}
