package reconcile

import (
	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// stillWanted reports whether an instance that was found missing is still
// desired: in a stale domain nothing would stop it.
func stillWanted(tx *store.Tx, a lrp.Actual) (bool, error) {
	if lrp.Derived(a.Domain) {
		return true, nil
	}
	return wantedByBBS(tx, a)
}

// wantedAgain reports whether an instance that was not desired when the plan was
// made is desired by now. It does not look at services and BOSH deployments: they
// take no change back once an instance has acted on it.
func wantedAgain(tx *store.Tx, stop Action) (bool, error) {
	switch a := stop.Actual; {
	case stop.Moves:
		return false, nil
	case a.Domain == lrp.DomainApps:
		return wantedByApp(tx, a)
	case !lrp.Derived(a.Domain):
		return wantedByBBS(tx, a)
	}
	return false, nil
}

func wantedByBBS(tx *store.Tx, a lrp.Actual) (bool, error) {
	d, err := store.BBSDesiredKeys.Get(tx, a.ProcessGUID)
	if store.IsNotFound(err) {
		return false, nil
	}
	return err == nil && a.Index < d.Instances, err
}

// wantedByApp reads the rows from which a loader derives an app's Desired.
func wantedByApp(tx *store.Tx, a lrp.Actual) (bool, error) {
	p, err := store.Processes.Get(tx, desire.CFProcess(a.ProcessGUID))
	if store.IsNotFound(err) || err == nil && a.Index >= p.Instances {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	app, err := store.Apps.Get(tx, p.AppGUID)
	if err != nil || app.State != cf.Started || desire.ProcessGUID(p, app) != a.ProcessGUID {
		return false, err
	}
	s, err := store.Sleeps.By(tx, "guids", p.GUID)
	if err != nil || len(s) > 0 && desire.Away(s[0], p, app) {
		return false, err
	}
	d, err := store.Droplets.Get(tx, desire.DropletGUID(p, app))
	if store.IsNotFound(err) {
		return false, nil
	}
	return err == nil && d.State == cf.DropletStaged, err
}
