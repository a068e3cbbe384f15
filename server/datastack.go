package server

import (
	"context"
	"errors"
	"fmt"
	"os"

	"cupola/runtime/lrp"
	"cupola/server/databroker"
	"cupola/store"
)

// DataStack is the build of the stack that databases run on, from a suite's
// packages.
func DataStack(suite string) (StackBuild, error) {
	packages, err := databroker.Packages(suite)
	return StackBuild{Suite: suite, Variant: "none", Packages: packages, Without: databroker.Without(), Name: databroker.Stack}, err
}

// DataInstance tells of an instance of the built-in service broker.
type DataInstance struct {
	GUID, Service, Plan, State string
	Bindings                   int
	UsedBytes                  int64  // of its volume
	Address                    string // of its container, for this machine alone; "" while it does not run
}

// DataServicesStatus lists what the built-in broker of a data directory has,
// whether its daemon runs or not.
func DataServicesStatus(ctx context.Context, c Config) (list []DataInstance, err error) {
	if err := c.normalizeForRoot(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(c.DataDir); err != nil {
		return nil, fmt.Errorf("there is no data directory %s: name it with --data-dir, or start 'cupola serve' first", c.DataDir)
	}
	d := &daemon{Config: c}
	defer d.close()
	err = d.openDir(ctx)
	if errors.Is(err, errInUse) {
		return list, newControl(c.DataDir).get(ctx, "/data-services", &list)
	}
	for _, open := range []func(context.Context) error{d.openStore, d.openRoots, d.openVolumes} {
		if err == nil {
			err = open(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	return d.dataInstances(ctx)
}

func (d *daemon) dataInstances(ctx context.Context) (list []DataInstance, err error) {
	list = []DataInstance{}
	err = d.store.Read(ctx, func(tx *store.Tx) error {
		rows, err := store.DataInstances.All(tx)
		if err != nil {
			return err
		}
		for _, r := range rows {
			n, err := store.DataBindings.Count(tx, store.Query{Where: map[string][]string{"instance_guids": {r.GUID}}})
			if err != nil {
				return err
			}
			list = append(list, DataInstance{GUID: r.GUID, Service: r.Service, Plan: r.Plan, State: string(r.State), Bindings: n})
		}
		actuals, err := store.ActualLRPs.By(tx, "domains", lrp.DomainServices)
		hosts := databroker.Hosts(rows, actuals)
		for n := range list {
			list[n].Address = hosts[databroker.Host(list[n].GUID)]
		}
		return err
	})
	for n := range list {
		used, err := d.volumes.Used(list[n].GUID)
		if err != nil {
			d.Log.DebugContext(ctx, "volume was not looked at", "instance_guid", list[n].GUID, "err", err)
		}
		list[n].UsedBytes = used
	}
	return list, err
}
