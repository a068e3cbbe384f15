package databroker

import (
	"context"

	"cupola/store"
	"cupola/store/cf"
)

// nameDashboard adds to an answer the URL of an instance's dashboard, if there is one.
func (b *broker) nameDashboard(a answer, instanceGUID string) {
	if url := b.Dashboard(instanceGUID); url != "" {
		a.Body["dashboard_url"] = url
	}
}

// keepDashboards gives the service instances the URLs of their dashboards until ctx ends: they change with the address of the
// API, and an instance of an earlier cupola had none.
func (b *broker) keepDashboards(ctx context.Context) error {
	return store.Derive(ctx, b.Store, store.Derivation[[]*cf.ServiceInstance]{Name: "dashboards of service instances", Read: b.misled, Log: b.Log,
		Use: store.Always(func(ctx context.Context, some []*cf.ServiceInstance) error {
			if len(some) == 0 {
				return nil
			}
			return b.Store.Write(ctx, b.leadToDashboards)
		})})
}

// misled lists the service instances whose row has another URL than their dashboard's. While the broker is asked for one, its job
// writes the row.
func (b *broker) misled(tx *store.Tx) (some []*cf.ServiceInstance, err error) {
	rows, err := store.DataInstances.All(tx)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		i, err := store.ServiceInstances.Find(tx, row.GUID)
		if err != nil {
			return nil, err
		}
		if i != nil && i.DashboardURL != b.Dashboard(i.GUID) && i.LastOperation.State != cf.OpInProgress {
			some = append(some, i)
		}
	}
	return some, nil
}

func (b *broker) leadToDashboards(tx *store.Tx) error {
	some, err := b.misled(tx)
	for _, i := range some {
		i.DashboardURL = b.Dashboard(i.GUID)
		if err := store.ServiceInstances.Update(tx, i); err != nil {
			return err
		}
	}
	return err
}
