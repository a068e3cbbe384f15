package ingress

import (
	"slices"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbsrows"
	"cupola/server/desire"
	"cupola/server/dns"
	"cupola/server/router"
	"cupola/store"
	"cupola/store/cf"
)

// Tables are what is derived.
type Tables struct {
	Routes router.Table
	Names  dns.Table
	// Certified are the names in internal domains by the GUIDs of the instances that
	// they lead to, sorted.
	Certified map[string][]string
}

// Read derives the tables from the rows.
func Read(tx *store.Tx, bbs *bbsrows.Cache) (Tables, error) {
	var r rows
	if err := r.load(tx, bbs); err != nil {
		return Tables{}, err
	}
	zones, internal := r.internalNames()
	return Tables{r.table(), r.names(zones, internal), certified(internal)}, nil
}

// rows are what the tables depend on. Instances may be all there are: those that
// must get no request are passed over.
type rows struct {
	routes      []*cf.Route
	domains     []*cf.Domain
	processes   []*cf.Process
	instances   []*lrp.Actual
	services    []*cf.RouteBinding
	policies    []*cf.RoutePolicy
	places      map[string]router.Place // of apps, by GUID
	databases   []*cf.DataInstance
	desired     []*bbsrows.Desired // by clients of the BBS
	deployments deployments        // of BOSH
}

func (r *rows) load(tx *store.Tx, bbs *bbsrows.Cache) (err error) {
	if r.routes, err = store.Routes.Kept(tx); err != nil {
		return err
	}
	if r.domains, err = store.Domains.All(tx); err != nil {
		return err
	}
	if r.instances, err = store.ActualLRPs.Kept(tx); err != nil {
		return err
	}
	if r.processes, err = store.Processes.KeptBy(tx, "guids", processesOf(r.instances)...); err != nil {
		return err
	}
	if err = r.loadServices(tx); err != nil {
		return err
	}
	if r.policies, err = store.RoutePolicies.All(tx); err != nil {
		return err
	}
	if err = r.loadPlaces(tx); err != nil {
		return err
	}
	if r.databases, err = store.DataInstances.All(tx); err != nil {
		return err
	}
	if r.desired, err = bbs.Running(tx); err != nil {
		return err
	}
	return r.deployments.load(tx)
}

// loadServices reads the route services. A route of which one cannot be read is
// left out: requests must not pass by what may guard it.
func (r *rows) loadServices(tx *store.Tx) (err error) {
	if r.services, err = store.RouteBindings.All(tx); err != nil {
		return err
	}
	damaged := store.RouteBindings.Damaged(tx)
	r.routes = slices.DeleteFunc(r.routes, func(route *cf.Route) bool {
		return slices.ContainsFunc(damaged, func(b *cf.RouteBinding) bool { return b.RouteGUID == route.GUID })
	})
	return nil
}

// processesOf are the GUIDs of the apps' processes that have instances: of
// thousands of processes most may be stopped.
func processesOf(instances []*lrp.Actual) (guids []string) {
	for _, a := range instances {
		if a.Domain == lrp.DomainApps {
			guids = append(guids, desire.CFProcess(a.ProcessGUID))
		}
	}
	return guids
}

// service is what a destination leads to.
type service struct{ appGUID, processType string }

// served gives the routable instances of each service.
func (r *rows) served() map[service][]*lrp.Actual {
	of := map[string]*cf.Process{}
	for _, p := range r.processes {
		of[p.GUID] = p
	}
	served := map[service][]*lrp.Actual{}
	for _, a := range r.instances {
		p := of[desire.CFProcess(a.ProcessGUID)]
		if p == nil || !a.Routable() {
			continue
		}
		s := service{p.AppGUID, p.Type}
		served[s] = append(served[s], a)
	}
	return served
}
