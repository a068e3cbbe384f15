package director

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"cupola/rootfs/volume"
	"cupola/runtime/lrp"
	"cupola/server/bosh/agent"
	"cupola/server/desire"
	"cupola/server/reconcile"
	"cupola/store"
	"cupola/store/cf"
)

// EgressGroup names the rules for addresses outside of the deployment: those
// of the security groups of all running apps.
const EgressGroup = "bosh"

// Source is what deployments desire.
func (l *Loop) Source() reconcile.Source {
	return reconcile.Source{
		Desired: l.desired, Work: l.work, Owns: lrp.OfBOSH, Ended: ended,
	}
}

// up are the phases in which processes run.
func up(p cf.BOSHPhase) bool {
	return p == cf.BOSHStarting || p == cf.BOSHPostStart || p == cf.BOSHRunning || p == cf.BOSHPreStop || p == cf.BOSHDraining
}

// desired is what runs of all instances that are up.
func (l *Loop) desired(tx *store.Tx) (all []lrp.Desired, unknown []string, err error) {
	rows, err := store.BOSHInstances.All(tx)
	for _, r := range store.BOSHInstances.Damaged(tx) {
		unknown = append(unknown, r.GUID)
	}
	if err != nil || len(rows) == 0 {
		return nil, unknown, err
	}
	egress, err := outside(tx)
	if err != nil {
		return nil, nil, err
	}
	faults := map[string]string{}
	for _, r := range rows {
		if !up(r.Phase) {
			continue
		}
		i, err := l.instance(tx, r, r.Digest, egress)
		if isBroken(err) {
			faults[r.GUID] = err.Error()
			unknown = append(unknown, r.GUID)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		for _, d := range i.Desired() {
			d.Unmonitored = r.Phase == cf.BOSHDraining // by its drain script a process may end, as on a machine of BOSH's
			all = append(all, d)
		}
	}
	l.setFaults(faults)
	return all, unknown, nil
}

// setFaults takes why instances cannot run, for tellFaults.
func (l *Loop) setFaults(faults map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !maps.Equal(l.faults, faults) {
		l.faults = faults
		l.wakeUp()
	}
}

// tellFaults writes down why instances cannot run: what runs of them goes on, and
// so does all else.
func (l *Loop) tellFaults(ctx context.Context) error {
	l.mu.Lock()
	faults := l.faults
	l.mu.Unlock()
	if len(faults) == 0 {
		return nil
	}
	return l.Store.Write(ctx, func(tx *store.Tx) error {
		for guid, why := range faults {
			r, err := store.BOSHInstances.Get(tx, guid)
			if store.IsNotFound(err) || err == nil && (r.Chosen || r.Failure == why) {
				continue
			}
			if err == nil {
				r.Failure = why
				err = store.BOSHInstances.Update(tx, r)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// outside are the rules of EgressGroup.
func outside(tx *store.Tx) ([]lrp.EgressRule, error) {
	groups, err := store.SecurityGroups.All(tx)
	return desire.Egress(groups), err
}

// instance is what runs for a row that has a spec.
func (l *Loop) instance(tx *store.Tx, r *cf.BOSHInstance, digest string, egress []lrp.EgressRule) (agent.Instance, error) {
	spec, err := l.specs.get(tx, digest)
	if err != nil {
		return agent.Instance{}, fmt.Errorf("instance %s/%d: %w", r.Group, r.Index, err)
	}
	i := agent.Instance{GUID: r.GUID, Digest: digest, Owner: r.DeploymentGUID, Egress: egress, EgressGroup: EgressGroup}
	if spec != nil {
		i.Spec = *spec
	}
	if r.DiskGUID != "" && i.StoreMB > 0 {
		i.Store = diskVolume(r.DiskGUID)
	}
	return i, nil
}

// diskVolume is the volume of a persistent disk.
func diskVolume(guid string) string { return "bosh-store-" + guid }

// VolumesOf are the volumes of all instances and disks, as they were made.
func VolumesOf(tx *store.Tx) (map[string]volume.Spec, error) {
	all := map[string]volume.Spec{}
	disks, err := store.BOSHDisks.All(tx)
	if err != nil {
		return nil, err
	}
	for _, d := range disks {
		all[diskVolume(d.GUID)] = volume.Spec{Bytes: int64(d.SizeMB) << 20}
	}
	rows, err := store.BOSHInstances.All(tx)
	if err != nil {
		return nil, err
	}
	l := New(Config{})
	for _, r := range rows {
		i, err := l.instance(tx, r, r.Digest, nil)
		if err != nil { // its disks may be good all the same
			i = agent.Instance{GUID: r.GUID}
		}
		for name, mb := range i.Disks() {
			if _, ok := all[name]; !ok {
				all[name] = volume.Spec{Bytes: int64(mb) << 20}
			}
		}
	}
	return all, nil
}

// work is what calls want to run.
func (l *Loop) work(tx *store.Tx) ([]reconcile.Work, error) {
	calls, err := store.BOSHCalls.Running(tx)
	if err != nil || len(calls) == 0 {
		return nil, err
	}
	egress, err := outside(tx)
	if err != nil {
		return nil, err
	}
	var all []reconcile.Work
	var guids []string
	for _, c := range calls {
		guids = append(guids, c.InstanceGUID)
	}
	rows, err := store.BOSHInstances.By(tx, "guids", guids...)
	if err != nil {
		return nil, err
	}
	byGUID := map[string]*cf.BOSHInstance{}
	for _, r := range rows {
		byGUID[r.GUID] = r
	}
	for _, c := range calls {
		w, err := l.workOf(tx, c, byGUID[c.InstanceGUID], egress)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

func (l *Loop) workOf(tx *store.Tx, c *cf.BOSHCall, row *cf.BOSHInstance, egress []lrp.EgressRule) (reconcile.Work, error) {
	w := reconcile.Work{GUID: c.GUID}
	d, err := store.BOSHDeployments.Get(tx, row.DeploymentGUID)
	if err != nil {
		return w, err
	}
	w.Domain = lrp.BOSHDomain(d.Name)
	i, err := l.instance(tx, row, c.Digest, egress)
	if isBroken(err) {
		w.Fault = err.Error()
		return w, nil
	}
	if err != nil {
		return w, err
	}
	call := agent.Call{GUID: c.GUID, Job: c.Job, Process: c.Process, Script: agent.Script(c.Script), Args: c.Args}
	if w.Run, err = i.Run(call); err != nil {
		w.Fault = err.Error()
	}
	return w, nil
}

// ended writes down how a call ended.
func ended(tx *store.Tx, guid string, end reconcile.Ending) error {
	c, err := store.BOSHCalls.Get(tx, guid)
	if err != nil || c.State != cf.BOSHCalling {
		return err
	}
	if end.Lost && c.Phase != cf.BOSHErrand {
		return callAgain(tx, c)
	}
	c.State, c.Result, c.Reason, c.EndedAt = cf.BOSHSucceeded, end.Result, end.Reason, tx.Now
	if end.Reason != "" {
		c.State = cf.BOSHFailed
	}
	return store.BOSHCalls.Update(tx, c)
}

// callAgain repeats a script with a lost result: BOSH requires scripts to be
// idempotent. Errands need not be.
func callAgain(tx *store.Tx, c *cf.BOSHCall) error {
	if err := store.BOSHCalls.Delete(tx, c.GUID); err != nil {
		return err
	}
	c.Resource = cf.Resource{}
	return store.BOSHCalls.Insert(tx, c)
}

// Policies let the instances of a deployment reach each other, and those of the
// deployments whose links they use.
func Policies(tx *store.Tx) (list []lrp.NetworkPolicy, err error) {
	all, err := store.BOSHDeployments.All(tx)
	guids := map[string]string{} // by name
	for _, d := range all {
		guids[d.Name] = d.GUID
	}
	for _, d := range all {
		to := []string{d.GUID}
		for _, l := range d.Consumes {
			if guid := guids[l.Deployment]; guid != "" && guid != d.GUID && !slices.Contains(to, guid) {
				to = append(to, guid)
			}
		}
		for _, guid := range to {
			for _, protocol := range []string{"tcp", "udp"} {
				list = append(list, lrp.NetworkPolicy{Source: d.GUID, Destination: guid, Protocol: protocol, FirstPort: 1, LastPort: 65535})
			}
		}
	}
	return list, err
}
