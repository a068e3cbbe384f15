package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/server/databroker"
	"cupola/store"
	"cupola/store/cf"
)

// dataBroker is the name by which the built-in broker is registered.
const dataBroker = "cupola"

// Settings of the store: the GUID of the built-in broker's registration, and
// the catalog's IDs of the plans that all orgs were given once.
const (
	dataBrokerSetting = "data_broker"
	dataPlansSetting  = "data_broker_plans"
)

// hasDataServices tells whether the built-in broker is on.
func (c *Config) hasDataServices() bool { return len(c.DataServices) > 0 }

// openDataServices opens the built-in broker, registers it as any broker is, and
// listens where its registration says.
func (d *daemon) openDataServices(ctx context.Context) error {
	if !d.hasDataServices() {
		return nil
	}
	row, err := d.dataBrokerRow(ctx)
	if err != nil {
		return err
	}
	if d.dataListener, err = listenAgain(ctx, row.URL); err != nil {
		return err
	}
	row.URL = "http://" + d.dataListener.Addr().String()
	d.dataBroker = databroker.New(databroker.Config{Store: d.store, Services: d.DataServices, Username: row.Username, Password: row.Password, Volumes: d.volumes,
		Attach: d.cell.Attach, Containers: d.cell.Containers, HasStack: d.hasDataStack, Log: d.Log})
	err = d.store.Write(ctx, func(tx *store.Tx) error { return registerDataBroker(tx, row) })
	d.dataBrokerGUID = row.GUID
	return err
}

// mountsFor tells whether a broker's volumes are here: those of the built-in one
// are.
func (d *daemon) mountsFor(brokerGUID string) bool {
	return brokerGUID != "" && brokerGUID == d.dataBrokerGUID
}

func (d *daemon) hasDataStack() bool {
	_, ok := d.roots.Stacks.Get(databroker.Stack)
	return ok
}

// dataBrokerRow is the broker's registration, or what is to become it.
func (d *daemon) dataBrokerRow(ctx context.Context) (row *cf.ServiceBroker, err error) {
	row = &cf.ServiceBroker{Name: dataBroker, Username: dataBroker, Password: rand.Text()}
	err = d.store.Read(ctx, func(tx *store.Tx) error {
		var guid string
		if ok, err := tx.Setting(dataBrokerSetting, &guid); !ok {
			return err
		}
		was, err := store.ServiceBrokers.Get(tx, guid)
		if err == nil {
			row = was
		}
		if store.IsNotFound(err) {
			err = nil // an admin took it away: it is made again
		}
		return err
	})
	return row, err
}

// listenAgain listens on the loopback at the port of a URL, or at any other one
// where that is taken by now.
func listenAgain(ctx context.Context, was string) (net.Listener, error) {
	var lc net.ListenConfig
	if u, err := url.Parse(was); err == nil && u.Port() != "" {
		if l, err := lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", u.Port())); err == nil {
			return l, nil
		}
	}
	return lc.Listen(ctx, "tcp", "127.0.0.1:0")
}

// registerDataBroker writes the registration, and has the catalog read.
func registerDataBroker(tx *store.Tx, row *cf.ServiceBroker) error {
	row.State = cf.BrokerSynchronizing
	err := store.ServiceBrokers.Put(tx, row)
	if store.IsTaken(err) {
		return fmt.Errorf("a service broker is called %q already, as the built-in one is: rename it with 'cf rename-service-broker'", dataBroker)
	}
	if err != nil {
		return err
	}
	if err := tx.SetSetting(dataBrokerSetting, row.GUID); err != nil {
		return err
	}
	work, err := json.Marshal(cf.ServiceWork{Actor: cf.Actor{GUID: row.GUID, Type: "service_broker", Name: row.Name}})
	if err != nil {
		return err
	}
	return store.Jobs.Insert(tx, &cf.Job{Operation: cf.JobSyncBroker, ResourceGUID: row.GUID, ResourceType: "service_brokers", State: cf.JobProcessing, Input: string(work)})
}

// serveDataServices answers the platform, and makes what it was promised.
func (d *daemon) serveDataServices(ctx context.Context) error {
	srv := &http.Server{Handler: d.dataBroker.Handler(), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(fault.Listener("dataservices", d.dataListener)); ctx.Err() == nil {
		return fmt.Errorf("serve the built-in service broker: %w", err)
	}
	return nil
}

// publishDataPlans gives every org the plans of the built-in broker, each once:
// what an admin makes of that later, stays.
func (d *daemon) publishDataPlans(ctx context.Context) error {
	return store.Derive(ctx, d.store, store.Derivation[bool]{Name: "plans of the built-in broker", Log: d.Log,
		Read: func(tx *store.Tx) (bool, error) {
			plans, err := newPlans(tx)
			return len(plans) > 0, err
		},
		Use: store.Always(func(ctx context.Context, some bool) error {
			if !some {
				return nil
			}
			return d.store.Write(ctx, publishNewPlans)
		})})
}

// newPlans are the plans of the built-in broker that were never published.
func newPlans(tx *store.Tx) (plans []*cf.ServicePlan, err error) {
	var guid string
	var known []string
	if _, err := tx.Setting(dataBrokerSetting, &guid); err != nil {
		return nil, err
	}
	if _, err := tx.Setting(dataPlansSetting, &known); err != nil {
		return nil, err
	}
	offerings, err := store.ServiceOfferings.By(tx, "service_broker_guids", guid)
	if err != nil {
		return nil, err
	}
	var guids []string
	for _, o := range offerings {
		guids = append(guids, o.GUID)
	}
	plans, err = store.ServicePlans.By(tx, "service_offering_guids", guids...)
	return slices.DeleteFunc(plans, func(p *cf.ServicePlan) bool { return slices.Contains(known, p.GUID) }), err
}

func publishNewPlans(tx *store.Tx) error {
	plans, err := newPlans(tx)
	if err != nil || len(plans) == 0 {
		return err
	}
	var known []string
	if _, err := tx.Setting(dataPlansSetting, &known); err != nil {
		return err
	}
	for _, p := range plans {
		known, p.Public = append(known, p.GUID), true
		if err := store.ServicePlans.Update(tx, p); err != nil {
			return err
		}
	}
	return tx.SetSetting(dataPlansSetting, known)
}

// dataDesired is what the instances of the built-in broker desire.
func (d *daemon) dataDesired(tx *store.Tx) (list []lrp.Desired, unknown []string, err error) {
	if !d.hasDataServices() {
		return nil, nil, nil
	}
	instances, err := store.DataInstances.All(tx)
	for _, i := range instances {
		if d, ok := databroker.Desired(i); ok {
			list = append(list, d)
		}
	}
	for _, i := range store.DataInstances.Damaged(tx) {
		unknown = append(unknown, databroker.ProcessGUID(i.GUID))
	}
	return list, unknown, err
}
