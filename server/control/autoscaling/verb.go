package autoscaling

import (
	"encoding/json"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/store"
	"cupola/store/cf"
)

// Get is an app's policy, as JSON; cf.ResourceNotFound if it has none.
func Get(c *control.Session, appGUID string) (json.RawMessage, error) {
	app, err := c.App(appGUID)
	if err != nil {
		return nil, err
	}
	return Of(c.Tx, app.GUID)
}

// Of is an app's policy for a part of the daemon; cf.ResourceNotFound if it has none.
func Of(tx *store.Tx, appGUID string) (json.RawMessage, error) {
	p, err := policyRow(tx, appGUID)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(p.Policy), nil
}

// policyRow is the policy of an app.
func policyRow(tx *store.Tx, appGUID string) (*cf.ScalingPolicy, error) {
	return store.ScalingPolicies.First(tx, store.Query{Where: map[string][]string{"app_guids": {appGUID}}})
}

// Put sets an app's policy, which text has as JSON, and returns it as it is kept. Its schedules
// start again.
func Put(c *control.Session, appGUID string, text []byte) (json.RawMessage, error) {
	app, err := c.App(appGUID)
	if err != nil {
		return nil, err
	}
	_, policy, err := Parse(text, c.Tx.Now)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(policy), Set(c, app, policy)
}

// Set sets the policy of an app to one that Parse returned.
func Set(c *control.Session, app *cf.App, policy string) error {
	row, err := policyRow(c.Tx, app.GUID)
	added := store.IsNotFound(err)
	switch {
	case added:
		row = &cf.ScalingPolicy{AppGUID: app.GUID}
	case err != nil:
		return err
	}
	row.Policy, row.Schedule = policy, ""
	if added {
		err = store.ScalingPolicies.Insert(c.Tx, row)
	} else {
		err = store.ScalingPolicies.Update(c.Tx, row)
	}
	if err != nil {
		return err
	}
	return c.AuditApp(audit.AppScalingPolicySet, app, audit.Data{"policy": json.RawMessage(policy)})
}

// Delete deletes an app's policy. The app keeps the instances it has.
func Delete(c *control.Session, appGUID string) error {
	app, err := c.App(appGUID)
	if err != nil {
		return err
	}
	return Unset(c, app)
}

// Unset is Delete for a part of the daemon.
func Unset(c *control.Session, app *cf.App) error {
	row, err := policyRow(c.Tx, app.GUID)
	if err != nil {
		return err
	}
	if err := store.ScalingPolicies.Delete(c.Tx, row.GUID); err != nil {
		return err
	}
	return c.AuditApp(audit.AppScalingPolicyDelete, app, audit.Data{})
}
