package databroker

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"

	"cupola/store"
	"cupola/store/cf"
)

// Name is the name by which the built-in broker is registered.
const Name = "cupola"

// Settings of the store: the GUID of the built-in broker's registration, and
// the catalog's IDs of the plans that all orgs were given once.
const (
	brokerSetting = "data_broker"
	plansSetting  = "data_broker_plans"
)

// registration is the broker's registration, or what is to become it.
func registration(ctx context.Context, s *store.Store) (row *cf.ServiceBroker, err error) {
	row = &cf.ServiceBroker{Name: Name, Username: Name, Password: rand.Text()}
	err = s.Read(ctx, func(tx *store.Tx) error {
		var guid string
		if ok, err := store.Settings.Get(tx, brokerSetting, &guid); !ok {
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

// register writes the registration, and has the catalog read.
func register(tx *store.Tx, row *cf.ServiceBroker) error {
	row.State = cf.BrokerSynchronizing
	err := store.ServiceBrokers.Put(tx, row)
	if store.IsTaken(err) {
		return fmt.Errorf("a service broker is called %q already, as the built-in one is: rename it with 'cf rename-service-broker'", Name)
	}
	if err != nil {
		return err
	}
	if err := store.Settings.Set(tx, brokerSetting, row.GUID); err != nil {
		return err
	}
	work, err := json.Marshal(cf.ServiceWork{Actor: cf.Actor{GUID: row.GUID, Type: "service_broker", Name: row.Name}})
	if err != nil {
		return err
	}
	return store.Jobs.Insert(tx, &cf.Job{Operation: cf.JobSyncBroker, ResourceGUID: row.GUID, ResourceType: "service_brokers", State: cf.JobProcessing, Input: string(work)})
}
