// Package reach keeps what running containers may connect to as security groups,
// network policies, service bindings and BOSH deployments say.
package reach

import (
	"context"
	"log/slog"

	"cupola/runtime/lrp"
	"cupola/server/bosh/director"
	"cupola/server/databroker"
	"cupola/server/desire"
	"cupola/store"
)

// Cell is what has the containers.
type Cell interface {
	// Adopted is closed once the cell knows the containers that survived.
	Adopted() <-chan struct{}
	SetReach(context.Context, lrp.Reach) error
}

// Config is what a Reach is made of.
type Config struct {
	Store *store.Store
	Cell  Cell
	Log   *slog.Logger
}

// Reach sets what containers may connect to.
type Reach struct{ Config }

// New makes a Reach.
func New(c Config) *Reach { return &Reach{c} }

// Run keeps the reach of containers current until ctx ends. Where the cell could
// not set all of it, it is set again.
func (r *Reach) Run(ctx context.Context) error {
	select {
	case <-r.Cell.Adopted():
	case <-ctx.Done():
		return nil
	}
	return store.Derive(ctx, r.Store, store.Derivation[lrp.Reach]{Name: "reach of containers", Read: read, Use: store.Always(r.Cell.SetReach), Log: r.Log})
}

// Set sets it once.
func (r *Reach) Set(ctx context.Context) error {
	return store.DeriveOnce(ctx, r.Store, read, r.Cell.SetReach)
}

// read derives it from the rows.
func read(tx *store.Tx) (lrp.Reach, error) {
	var in desire.ReachIn
	var err error
	if in.Groups, err = store.SecurityGroups.All(tx); err != nil {
		return lrp.Reach{}, err
	}
	if in.Spaces, err = store.Spaces.All(tx); err != nil {
		return lrp.Reach{}, err
	}
	if in.Policies, err = store.NetworkPolicies.All(tx); err != nil {
		return lrp.Reach{}, err
	}
	data, err := databroker.BoundPolicies(tx)
	if err != nil {
		return lrp.Reach{}, err
	}
	deployed, err := director.Policies(tx)
	if err != nil {
		return lrp.Reach{}, err
	}
	r := desire.Reach(in)
	r.Policies = append(append(r.Policies, data...), deployed...)
	r.Egress[director.EgressGroup] = desire.Egress(in.Groups)
	return r, nil
}
