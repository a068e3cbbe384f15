package ingress

import (
	"maps"
	"slices"
	"strings"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbsrows"
	"cupola/server/bbs/model"
	"cupola/server/router"
)

// routable gives the routable instances of each process GUID.
func routable(instances []*lrp.Actual) map[string][]*lrp.Actual {
	of := map[string][]*lrp.Actual{}
	for _, a := range instances {
		if a.Routable() {
			of[a.ProcessGUID] = append(of[a.ProcessGUID], a)
		}
	}
	return of
}

// addDesiredTCP adds the TCP routes of what clients of the BBS desire. A port that
// leads to an app of Cloud Foundry goes on leading there alone, and one that two
// desire to the first.
func addDesiredTCP(t *router.Table, desired []*bbsrows.Desired, instances []*lrp.Actual) {
	serving, taken := routable(instances), map[int]bool{}
	for _, r := range t.Routes {
		taken[r.Port] = true
	}
	for _, w := range desired {
		for _, r := range model.TCPRoutes(w.Message) {
			if taken[r.ExternalPort] {
				continue
			}
			taken[r.ExternalPort] = true
			one := router.Route{Port: r.ExternalPort, AppGUID: w.LRP.Log.GUID}
			one.Endpoints = endpoints(w, model.Route{Port: uint16(r.ContainerPort), Protocol: "tcp"}, serving[w.LRP.ProcessGUID])
			t.Routes = append(t.Routes, one)
		}
	}
}

// addDesiredNames adds the internal names of what clients of the BBS desire, as
// far as they are in an internal domain. A name that leads to apps of Cloud
// Foundry goes on leading there alone.
func addDesiredNames(names map[string][]*lrp.Actual, zones []string, desired []*bbsrows.Desired, instances []*lrp.Actual) {
	serving, mine := routable(instances), map[string][]*lrp.Actual{}
	for _, w := range desired {
		for _, host := range model.InternalHosts(w.Message) {
			if _, taken := names[host]; !taken && slices.ContainsFunc(zones, func(zone string) bool { return strings.HasSuffix(host, "."+zone) }) {
				mine[host] = append(mine[host], serving[w.LRP.ProcessGUID]...)
			}
		}
	}
	maps.Copy(names, mine)
}

// addDesired adds the routes of what clients of the BBS desire. A name that leads
// to an app of Cloud Foundry goes on leading there alone.
func addDesired(t *router.Table, desired []*bbsrows.Desired, instances []*lrp.Actual) {
	serving := routable(instances)
	type name struct{ host, path string }
	taken, at := map[name]bool{}, map[name]int{}
	for _, r := range t.Routes {
		taken[name{r.Host, r.Path}] = true
	}
	for _, w := range desired {
		for _, r := range model.Routes(w.Message) {
			n := name{r.Host, r.Path}
			if taken[n] {
				continue
			}
			i, ok := at[n]
			if !ok {
				i = len(t.Routes)
				at[n] = i
				one := router.Route{Host: r.Host, Path: r.Path, AppGUID: w.LRP.Log.GUID, ServiceURL: r.ServiceURL}
				one.Options = options(r.Options)
				t.Routes = append(t.Routes, one)
			}
			t.Routes[i].Endpoints = append(t.Routes[i].Endpoints, endpoints(w, r, serving[w.LRP.ProcessGUID])...)
		}
	}
}

func endpoints(w *bbsrows.Desired, r model.Route, instances []*lrp.Actual) (list []router.Endpoint) {
	for _, a := range instances {
		e := endpoint(a, r.Port, w.LRP.Log.GUID, a.ProcessGUID, r.Protocol)
		e.Segment = r.Segment
		list = append(list, e)
	}
	return list
}
