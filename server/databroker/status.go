package databroker

import (
	"context"
	"log/slog"
	"slices"

	"cupola/rootfs/volume"
	"cupola/runtime/lrp"
	"cupola/store"
)

// InstanceStatus describes an instance of the built-in service broker.
type InstanceStatus struct {
	GUID, Service, Plan, State string
	Bindings                   int
	UsedBytes                  int64  // of its volume
	Address                    string // of its container, for this machine alone; "" while it does not run
}

// Status reports what the built-in broker has, whether it runs or not.
type Status struct {
	Store   *store.Store
	Volumes *volume.Store
	HasFile HasFile
	Offer   Offer // what the running daemon offers; empty if none runs
	Log     *slog.Logger
}

// ServiceStatus describes a service that the built-in broker can offer.
type ServiceStatus struct {
	Name     string
	Offered  bool // by the running daemon
	Prepared bool // the stack has its programs, or it needs none
}

// FileStatus describes an operator's service file that the running daemon read.
type FileStatus struct {
	File    string
	Service string // "" of one that is not offered
	Version string
	Fault   string // with a Service: what the file said before is offered
}

// Report is what 'cupola broker status' shows.
type Report struct {
	Services  []ServiceStatus
	Files     []FileStatus `json:",omitempty"`
	Instances []InstanceStatus
}

// Report lists services and instances.
func (s Status) Report(ctx context.Context) (r Report, err error) {
	missing := Missing(Names(), s.HasFile)
	for _, name := range Names() {
		if indexOf(s.Offer.Files, name) >= 0 {
			continue // Files has it
		}
		r.Services = append(r.Services, ServiceStatus{name, s.Offer.offers(name), !slices.Contains(missing, name)})
	}
	r.Files = s.Offer.read
	r.Instances, err = s.instances(ctx)
	return r, err
}

// Unprepared are the services that are offered and not prepared.
func (r Report) Unprepared() (names []string) {
	for _, s := range r.Services {
		if s.Offered && !s.Prepared {
			names = append(names, s.Name)
		}
	}
	return names
}

func (s Status) instances(ctx context.Context) (list []InstanceStatus, err error) {
	list = []InstanceStatus{}
	err = s.Store.Read(ctx, func(tx *store.Tx) error {
		rows, err := store.DataInstances.All(tx)
		if err != nil {
			return err
		}
		for _, r := range rows {
			n, err := store.DataBindings.Count(tx, store.Query{Where: map[string][]string{"instance_guids": {r.GUID}}})
			if err != nil {
				return err
			}
			list = append(list, InstanceStatus{GUID: r.GUID, Service: r.Service, Plan: r.Plan, State: string(r.State), Bindings: n})
		}
		actuals, err := store.ActualLRPs.By(tx, "domains", lrp.DomainServices)
		hosts := Hosts(rows, actuals)
		for n := range list {
			list[n].Address = hosts[host(list[n].GUID)]
		}
		return err
	})
	for n := range list {
		used, err := s.Volumes.Used(list[n].GUID)
		if err != nil {
			s.Log.DebugContext(ctx, "volume was not looked at", "instance_guid", list[n].GUID, "err", err)
		}
		list[n].UsedBytes = used
	}
	return list, err
}
