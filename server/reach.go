package server

import (
	"context"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/bosh/director"
	"cupola/server/desire"
	"cupola/store"
)

// reachRetry is how long is waited after what containers may reach could not be
// set, or not all of it.
const reachRetry = 5 * time.Second

// keepReach lets running containers reach what security groups and network
// policies say, until ctx ends.
func (h *daemon) keepReach(ctx context.Context) error {
	changed, stop := h.store.Watch(store.SecurityGroups.Name(), store.Spaces.Name(), store.NetworkPolicies.Name(), store.BOSHDeployments.Name(), store.DataBindings.Name(), store.DataInstances.Name())
	defer stop()
	<-h.cell.Adopted()
	for {
		var again <-chan time.Time
		if err := h.setReach(ctx); err != nil && ctx.Err() == nil {
			h.Log.ErrorContext(ctx, "reach of containers not updated", "err", err)
			again = time.After(reachRetry)
		}
		select {
		case <-changed:
		case <-again:
		case <-ctx.Done():
			return nil
		}
	}
}

func (h *daemon) setReach(ctx context.Context) error {
	reach, err := h.reach(ctx)
	if err != nil {
		return err
	}
	return h.cell.SetReach(ctx, reach)
}

func (h *daemon) reach(ctx context.Context) (lrp.Reach, error) {
	var in desire.ReachIn
	var data, deployed []lrp.NetworkPolicy
	err := h.store.Read(ctx, func(tx *store.Tx) (err error) {
		if in.Groups, err = store.SecurityGroups.All(tx); err != nil {
			return err
		}
		if in.Spaces, err = store.Spaces.All(tx); err != nil {
			return err
		}
		if data, err = dataPolicies(tx); err != nil {
			return err
		}
		if deployed, err = director.Policies(tx); err != nil {
			return err
		}
		in.Policies, err = store.NetworkPolicies.All(tx)
		return err
	})
	r := desire.Reach(in)
	r.Policies = append(append(r.Policies, data...), deployed...)
	r.Egress[director.EgressGroup] = desire.Egress(in.Groups)
	return r, err
}
