package builtin

import (
	"context"
	"slices"

	"cupola/store"
	"cupola/store/cf"
)

// publishPlans gives every org the plans of the broker, each once:
// what an admin makes of that later, stays.
func (b *Broker) publishPlans(ctx context.Context) error {
	return store.Derive(ctx, b.Store, store.Derivation[bool]{Name: "plans of the service broker " + b.Name, Log: b.Log,
		Read: func(tx *store.Tx) (bool, error) {
			plans, err := b.newPlans(tx)
			return len(plans) > 0, err
		},
		Use: store.Always(func(ctx context.Context, some bool) error {
			if !some {
				return nil
			}
			return b.Store.Write(ctx, b.publishNewPlans)
		})})
}

// plansSetting lists the plans that all orgs were given once.
func (c Config) plansSetting() string { return c.Setting + "_plans" }

// newPlans are the plans of the broker that were never published.
func (b *Broker) newPlans(tx *store.Tx) (plans []*cf.ServicePlan, err error) {
	var guid string
	var known []string
	if _, err := store.Settings.Get(tx, b.Setting, &guid); err != nil {
		return nil, err
	}
	if _, err := store.Settings.Get(tx, b.plansSetting(), &known); err != nil {
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

func (b *Broker) publishNewPlans(tx *store.Tx) error {
	plans, err := b.newPlans(tx)
	if err != nil || len(plans) == 0 {
		return err
	}
	var known []string
	if _, err := store.Settings.Get(tx, b.plansSetting(), &known); err != nil {
		return err
	}
	for _, p := range plans {
		known, p.Public = append(known, p.GUID), true
		if err := store.ServicePlans.Update(tx, p); err != nil {
			return err
		}
	}
	return store.Settings.Set(tx, b.plansSetting(), known)
}
