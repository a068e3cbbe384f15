package server

import (
	"context"
	"strconv"

	"cupola/server/desire"
	"cupola/server/router"
	"cupola/store"
)

// route keeps the router's table as the rows want it, until ctx ends.
func (h *house) route(ctx context.Context) error {
	changed, stop := h.store.Watch(store.ActualLRPs.Name(), store.Routes.Name(), store.Domains.Name(), store.Processes.Name(), store.Apps.Name())
	defer stop()
	for {
		if err := h.setRoutes(ctx); err != nil && ctx.Err() == nil {
			h.Log.ErrorContext(ctx, "routes not updated", "err", err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

func (h *house) setRoutes(ctx context.Context) error {
	var in desire.RoutesIn
	err := h.store.Read(ctx, func(tx *store.Tx) (err error) {
		if in.Routes, err = store.Routes.All(tx); err != nil {
			return err
		}
		if in.Domains, err = store.Domains.All(tx); err != nil {
			return err
		}
		if in.Processes, err = store.Processes.All(tx); err != nil {
			return err
		}
		in.Instances, err = store.ActualLRPs.All(tx)
		return err
	})
	if err != nil {
		return err
	}
	h.router.Set(table(desire.Routes(in)))
	return nil
}

func table(entries []desire.RouteEntry) router.Table {
	var t router.Table
	for _, e := range entries {
		r := router.Route{Host: e.Host, Path: e.Path, AppGUID: e.AppGUID}
		r.Options.LoadBalancing, _ = e.Options["loadbalancing"].(string)
		for _, to := range e.Endpoints {
			r.Endpoints = append(r.Endpoints, router.Endpoint{Address: to.Address, AppGUID: to.AppGUID, ProcessGUID: to.ProcessGUID,
				InstanceGUID: to.InstanceGUID, Index: to.Index, Protocol: to.Protocol, Tags: map[string]string{"instance_id": strconv.Itoa(to.Index)}})
		}
		t.Routes = append(t.Routes, r)
	}
	return t
}
