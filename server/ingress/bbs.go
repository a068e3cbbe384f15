package ingress

import (
	"cupola/runtime/lrp"
	"cupola/server/bbs/bbsrows"
	"cupola/server/bbs/model"
	"cupola/server/router"
)

// addDesired adds the routes of what clients of the BBS desire. A name that leads
// to an app of Cloud Foundry goes on leading there alone.
func addDesired(t *router.Table, desired []*bbsrows.Desired, instances []*lrp.Actual) {
	serving := map[string][]*lrp.Actual{}
	for _, a := range instances {
		if a.Routable() {
			serving[a.ProcessGUID] = append(serving[a.ProcessGUID], a)
		}
	}
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
		list = append(list, endpoint(a, r.Port, w.LRP.Log.GUID, a.ProcessGUID, r.Protocol))
	}
	return list
}
