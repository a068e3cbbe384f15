package scalingbroker

import (
	"encoding/json"
	"net/http"

	"cupola/server/control"
	"cupola/server/control/autoscaling"
	"cupola/server/osb/builtin"
	"cupola/store"
	"cupola/store/cf"
)

var (
	errNoInstance = &refusal{Status: http.StatusNotFound, Text: "instance does not exist"}
	errConflict   = &refusal{Status: http.StatusConflict, Text: "instance already exists"}
)

// in runs f in a transaction, as the autoscaler.
func (b *broker) in(r *http.Request, f func(*control.Session) error) error {
	return control.InSession(r.Context(), b.Store, &control.Platform{}, func(c *control.Session) error {
		c.Actor = autoscaling.Actor
		return f(c)
	})
}

func (b *broker) provision(r *http.Request) (a answer, err error) {
	q, err := decode(r)
	if err != nil {
		return a, err
	}
	a = answer{Status: http.StatusCreated, Body: object{}}
	err = b.in(r, func(c *control.Session) error {
		was, err := store.ScalingInstances.Find(c.Tx, r.PathValue("instance"))
		switch {
		case err != nil:
			return err
		case was != nil && was.Request == builtin.Text(q):
			a.Status = http.StatusOK
			return nil
		case was != nil:
			return errConflict
		}
		policy, _, err := q.instanceParameters(c.Tx.Now)
		if err != nil {
			return err
		}
		return store.ScalingInstances.Insert(c.Tx, &cf.ScalingInstance{Resource: cf.Resource{GUID: r.PathValue("instance")}, Request: builtin.Text(q), DefaultPolicy: policy})
	})
	return a, err
}

// update sets another default policy. The apps that have the old one get the new one, and so do
// those without any.
func (b *broker) update(r *http.Request) (a answer, err error) {
	q, err := decode(r)
	if err != nil {
		return a, err
	}
	return answer{Status: http.StatusOK, Body: object{}}, b.in(r, func(c *control.Session) error {
		i, err := store.ScalingInstances.Find(c.Tx, r.PathValue("instance"))
		if err != nil || i == nil {
			return control.OrElse(err, errNoInstance)
		}
		policy, given, err := q.instanceParameters(c.Tx.Now)
		if err != nil || !given || policy == i.DefaultPolicy {
			return err
		}
		bindings, err := store.ScalingBindings.By(c.Tx, "instance_guids", i.GUID)
		if err != nil {
			return err
		}
		for _, n := range bindings {
			if err := replace(c, n.AppGUID, i.DefaultPolicy, policy); err != nil {
				return err
			}
		}
		i.DefaultPolicy = policy
		return store.ScalingInstances.Update(c.Tx, i)
	})
}

// replace gives an app another default policy, "" for none, unless it has its own policy.
func replace(c *control.Session, appGUID, was, now string) error {
	has, err := autoscaling.Of(c.Tx, appGUID)
	if err := control.IfFound(err); err != nil || string(has) != was {
		return err
	}
	return set(c, appGUID, now)
}

// set sets the policy of an app; "" for none.
func set(c *control.Session, appGUID, policy string) error {
	app, err := store.Apps.Get(c.Tx, appGUID)
	if err != nil {
		return err
	}
	if policy == "" {
		return control.IfFound(autoscaling.Unset(c, app))
	}
	return autoscaling.Set(c, app, policy)
}

func (b *broker) fetch(r *http.Request) (a answer, err error) {
	err = b.Store.Read(r.Context(), func(tx *store.Tx) error {
		i, err := store.ScalingInstances.Find(tx, r.PathValue("instance"))
		if err != nil || i == nil {
			return control.OrElse(err, errNoInstance)
		}
		a = answer{Status: http.StatusOK, Body: object{"service_id": serviceID, "plan_id": planID, "parameters": object{}}}
		if i.DefaultPolicy != "" {
			a.Body["parameters"] = object{"default_policy": json.RawMessage(i.DefaultPolicy)}
		}
		return nil
	})
	return a, err
}

// deprovision deletes an instance, whose bindings are gone: the platform sees to that.
func (b *broker) deprovision(r *http.Request) (a answer, err error) {
	a = answer{Status: http.StatusOK, Body: object{}}
	err = b.in(r, func(c *control.Session) error {
		i, err := store.ScalingInstances.Find(c.Tx, r.PathValue("instance"))
		if err != nil || i == nil {
			a.Status = http.StatusGone
			return err
		}
		return store.ScalingInstances.Delete(c.Tx, i.GUID)
	})
	return a, err
}
