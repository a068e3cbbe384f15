package server

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbsrows"
	"cupola/server/desire"
	"cupola/server/router"
	"cupola/store"
	"cupola/store/cf"
)

// routing counts how often the router's table was set.
type routing struct {
	kick chan struct{} // asks for one more time

	mu    sync.Mutex
	begun uint64
	done  uint64        // the last of begun that is
	set   chan struct{} // closed at the next done
}

func newRouting() *routing {
	return &routing{kick: make(chan struct{}, 1), set: make(chan struct{})}
}

func (r *routing) begin() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun++
	return r.begun
}

func (r *routing) end(n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = n
	close(r.set)
	r.set = make(chan struct{})
}

// current waits until the table holds what the rows say now, or later.
func (r *routing) current(ctx context.Context) error {
	r.mu.Lock()
	want := r.begun + 1
	r.mu.Unlock()
	select {
	case r.kick <- struct{}{}:
	default:
	}
	for {
		r.mu.Lock()
		done, set := r.done, r.set
		r.mu.Unlock()
		if done >= want {
			return nil
		}
		select {
		case <-set:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// route keeps the router's table as the rows want it, until ctx ends. Many changes
// at once make one table: making them takes at most half of the time.
func (h *daemon) route(ctx context.Context) error {
	changed, stop := h.store.Watch(store.ActualLRPs.Name(), store.Routes.Name(), store.Domains.Name(), store.Processes.Name(), store.Apps.Name(), store.RouteBindings.Name(), store.RoutePolicies.Name(), store.DataInstances.Name(), store.BBSRunning, store.BOSHDeployments.Name(), store.BOSHInstances.Name())
	defer stop()
	for {
		n, began := h.routing.begin(), time.Now()
		err := h.setRoutes(ctx)
		var again <-chan time.Time
		if err == nil {
			h.routing.end(n)
		} else if ctx.Err() == nil {
			h.Log.ErrorContext(ctx, "routes not updated", "err", err)
			again = time.After(routeRetry)
		}
		select {
		case <-time.After(time.Since(began)):
		case <-ctx.Done():
			return nil
		}
		select {
		case <-changed:
		case <-h.routing.kick:
		case <-again:
		case <-ctx.Done():
			return nil
		}
	}
}

// routeRetry is how long the router's table stays as it is after an error when no
// row changes.
const routeRetry = time.Second

// settle waits until no request is under way to an instance whose row says that
// it gets none.
func (h *daemon) settle(ctx context.Context, instanceGUID string) error {
	if err := h.routing.current(ctx); err != nil {
		return err
	}
	return h.router.Settle(ctx, instanceGUID)
}

func (h *daemon) setRoutes(ctx context.Context) error {
	var in desire.RoutesIn
	var wishes []*bbsrows.Desired
	var databases []*cf.DataInstance
	var places map[string]router.Place
	var deployed boshNames
	err := h.store.Read(ctx, func(tx *store.Tx) (err error) {
		if in.Routes, err = store.Routes.All(tx); err != nil {
			return err
		}
		if in.Domains, err = store.Domains.All(tx); err != nil {
			return err
		}
		if in.Instances, err = store.ActualLRPs.All(tx); err != nil {
			return err
		}
		if in.Processes, err = store.Processes.By(tx, "guids", processesOf(in.Instances)...); err != nil {
			return err
		}
		if in.Services, err = store.RouteBindings.All(tx); err != nil {
			return err
		}
		if in.Policies, err = store.RoutePolicies.All(tx); err != nil {
			return err
		}
		if places, err = placesOf(tx, in.Domains); err != nil {
			return err
		}
		if databases, err = store.DataInstances.All(tx); err != nil {
			return err
		}
		if wishes, err = h.desired.Running(tx); err != nil {
			return err
		}
		return deployed.load(tx)
	})
	if err != nil {
		return err
	}
	t := table(desire.Routes(in))
	t.Guarded = guarded(in.Domains)
	place(&t, places)
	addWishes(&t, wishes, in.Instances)
	t.Routes = slices.DeleteFunc(t.Routes, func(r router.Route) bool { return cf.IsSystemHost(r.Host, h.Domain) })
	h.router.Set(t)
	if h.names != nil {
		names := internalNames(in)
		addDataNames(&names, databases, in.Instances)
		deployed.add(&names, in.Instances)
		h.names.Set(names)
	}
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

func table(entries []desire.RouteEntry) router.Table {
	var t router.Table
	for _, e := range entries {
		r := router.Route{Port: e.Port, Host: e.Host, Path: e.Path, AppGUID: e.AppGUID, ServiceURL: e.ServiceURL}
		r.Options = routeOptions(e.Options)
		if p := e.Policies; p != nil {
			r.Policy = &router.Policy{Scope: p.Scope, Sources: p.Sources}
		}
		for _, to := range e.Endpoints {
			r.Endpoints = append(r.Endpoints, router.Endpoint{Address: to.Address, AppGUID: to.AppGUID, ProcessGUID: to.ProcessGUID,
				InstanceGUID: to.InstanceGUID, Index: to.Index, Protocol: to.Protocol, Tags: map[string]string{"instance_id": strconv.Itoa(to.Index)}})
		}
		t.Routes = append(t.Routes, r)
	}
	return t
}

// routeOptions are the options of a route as the API has them. Of a balance that
// is no number nothing is taken.
func routeOptions(options map[string]any) (o router.Options) {
	o.LoadBalancing, _ = options["loadbalancing"].(string)
	o.HashHeader, _ = options["hash_header"].(string)
	o.HashBalance, _ = strconv.ParseFloat(fmt.Sprint(options["hash_balance"]), 64)
	return o
}
