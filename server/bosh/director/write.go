package director

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cupola/rootfs/volume"
	"cupola/server/bosh/agent"
	"cupola/store"
	"cupola/store/cf"
)

// write does what a step says, and returns the volumes that then belong to nothing.
func (l *Loop) write(tx *store.Tx, t *cf.BOSHTask, c changes) (gone []string, err error) {
	for n := range c.Instances {
		if err := store.BOSHInstances.Update(tx, &c.Instances[n]); err != nil {
			return nil, err
		}
		if err := l.noteSize(tx, &c.Instances[n]); err != nil {
			return nil, err
		}
	}
	for _, guid := range c.Orphans {
		if err := orphan(tx, t, guid); err != nil {
			return nil, err
		}
	}
	for _, guid := range c.Forget {
		if err := store.BOSHCalls.Delete(tx, guid); err != nil && !store.IsNotFound(err) {
			return nil, err
		}
	}
	for n := range c.Calls {
		if err := store.BOSHCalls.Insert(tx, &c.Calls[n]); err != nil {
			return nil, err
		}
	}
	for n := range c.Events {
		if err := store.BOSHTaskEvents.Insert(tx, &c.Events[n]); err != nil {
			return nil, err
		}
	}
	if err := record(tx, t, c.Happened); err != nil {
		return nil, err
	}
	drop, err := dropsDisks(t)
	if err != nil {
		return nil, err
	}
	for n := range c.Delete {
		volumes, err := deleteInstance(tx, t, &c.Delete[n], drop)
		if err != nil {
			return nil, err
		}
		gone = append(gone, volumes...)
	}
	if c.Task == nil {
		return gone, nil
	}
	return gone, l.writeTask(tx, c.Task)
}

// comesUp reports whether an instance is starting, for which it needs its
// disks.
func comesUp(r *cf.BOSHInstance) bool {
	return r.Phase == cf.BOSHPreStart || r.Phase == cf.BOSHStarting
}

// noteSize writes down how large the persistent disk of an instance that comes up
// is now, unless it could not grow.
func (l *Loop) noteSize(tx *store.Tx, r *cf.BOSHInstance) error {
	if !comesUp(r) || r.DiskGUID == "" || r.Failure != "" {
		return nil
	}
	spec, err := l.specs.get(tx, r.Digest)
	if err != nil || spec == nil {
		return err
	}
	d, err := store.BOSHDisks.Get(tx, r.DiskGUID)
	if err != nil || d.SizeMB >= spec.StoreMB {
		return err
	}
	d.SizeMB = spec.StoreMB
	return store.BOSHDisks.Update(tx, d)
}

func dropsDisks(t *cf.BOSHTask) (bool, error) {
	p, err := decodePlan(t.Plan)
	return p.DropDisks, err
}

// deleteInstance removes an instance. Its persistent disk is kept as an orphan,
// unless it is to go.
func deleteInstance(tx *store.Tx, t *cf.BOSHTask, r *cf.BOSHInstance, drop bool) (gone []string, err error) {
	gone = agent.Instance{GUID: r.GUID}.Ephemeral()
	if err := store.BOSHInstances.Delete(tx, r.GUID); err != nil || r.DiskGUID == "" {
		return gone, err
	}
	if !drop {
		return gone, orphan(tx, t, r.DiskGUID)
	}
	d, err := store.BOSHDisks.Get(tx, r.DiskGUID)
	if err == nil {
		err = recordDisk(tx, t, "delete", d, r)
	}
	if err != nil {
		return nil, err
	}
	return append(gone, diskVolume(r.DiskGUID)), store.BOSHDisks.Delete(tx, r.DiskGUID)
}

// orphan keeps a disk that is not an instance's any longer.
func orphan(tx *store.Tx, t *cf.BOSHTask, guid string) error {
	d, err := store.BOSHDisks.Get(tx, guid)
	if err != nil {
		return err
	}
	d.OrphanedAt = tx.Now
	if err := recordDisk(tx, t, "orphan", d, nil); err != nil {
		return err
	}
	return store.BOSHDisks.Update(tx, d)
}

// writeTask writes a task that has come further. With the end of a delete the
// deployment goes.
func (l *Loop) writeTask(tx *store.Tx, t *cf.BOSHTask) error {
	if t.State == cf.BOSHProcessing {
		return store.BOSHTasks.Update(tx, t)
	}
	if err := endTask(tx, t); err != nil {
		return err
	}
	if Kind(t.Kind) == Delete && t.State == cf.BOSHDone {
		d, err := store.BOSHDeployments.First(tx, store.Query{Where: map[string][]string{"names": {t.DeploymentName}}})
		if err == nil {
			err = store.BOSHDeployments.Delete(tx, d.GUID)
		}
		if err != nil {
			return err
		}
	}
	if err := store.BOSHSpecs.DropUnused(tx); err != nil {
		return err
	}
	return l.forgetSpecs(tx)
}

// forgetSpecs forgets the specs that no instance has any longer.
func (l *Loop) forgetSpecs(tx *store.Tx) error {
	rows, err := store.BOSHInstances.All(tx)
	used := map[string]bool{}
	for _, r := range rows {
		used[r.Digest], used[r.Next] = true, true
	}
	l.specs.retain(used)
	return err
}

// makeDisks creates the disks of starting instances and of errands, in the
// desired sizes. It returns what went wrong with them.
func (l *Loop) makeDisks(ctx context.Context, c changes) (faults diskFaults, err error) {
	needs := map[string]string{} // digest by instance
	for _, r := range c.Instances {
		if comesUp(&r) {
			needs[r.GUID] = r.Digest
		}
	}
	for _, call := range c.Calls {
		if call.Phase == cf.BOSHErrand {
			needs[call.InstanceGUID] = call.Digest
		}
	}
	disks := map[string]map[string]int{} // sizes by instance and name
	faults = diskFaults{lacking: map[string]error{}, small: map[string]error{}}
	err = l.Store.Read(ctx, func(tx *store.Tx) error {
		for guid, digest := range needs {
			row, err := store.BOSHInstances.Get(tx, guid)
			if err != nil {
				return err
			}
			i, err := l.instance(tx, row, digest, nil)
			if isBroken(err) {
				faults.lacking[guid] = err
				continue
			}
			if err != nil {
				return err
			}
			disks[guid] = i.Disks()
		}
		return nil
	})
	for guid, all := range disks {
		for name, mb := range all {
			bytes := int64(mb) << 20
			if fault := l.Volumes.Create(name, volume.Spec{Bytes: bytes}); fault != nil {
				faults.lacking[guid] = errors.Join(faults.lacking[guid], fmt.Errorf("make the disk %s: %w", name, fault))
			} else if fault := tried(func() error { return l.Volumes.Grow(name, bytes) }); fault != nil {
				faults.small[guid] = errors.Join(faults.small[guid], fmt.Errorf("grow it to %d MB: %w", mb, fault))
			}
		}
	}
	return faults, err
}

// tried does something with a disk. It tries again: a disk may be busy.
func tried(do func() error) (err error) {
	const tries = 3
	for range tries {
		if err = do(); err == nil {
			return nil
		}
	}
	return err
}

func (l *Loop) dropDisks(names []string) (err error) {
	for _, name := range names {
		if fault := l.Volumes.Remove(name); fault != nil {
			err = errors.Join(err, fmt.Errorf("remove the disk %s: %w", name, fault))
		}
	}
	return err
}

// sweep removes the volumes of instances and disks that are no more: somebody
// deleted the disk, or a daemon that was killed has left them.
func (l *Loop) sweep(ctx context.Context) {
	if err := l.sweepVolumes(ctx); err != nil && ctx.Err() == nil {
		l.Log.ErrorContext(ctx, "disks of instances were not looked through", "err", err)
	}
}

func (l *Loop) sweepVolumes(ctx context.Context) error {
	names, err := l.Volumes.List()
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	err = l.Store.Read(ctx, func(tx *store.Tx) error {
		instances, err := store.BOSHInstances.All(tx)
		if err != nil {
			return err
		}
		for _, r := range instances {
			for _, name := range (agent.Instance{GUID: r.GUID}).Ephemeral() {
				wanted[name] = true
			}
		}
		disks, err := store.BOSHDisks.All(tx)
		for _, d := range disks {
			wanted[diskVolume(d.GUID)] = true
		}
		return err
	})
	if err != nil {
		return err
	}
	return l.dropDisks(slices.DeleteFunc(names, func(name string) bool { return wanted[name] || !strings.HasPrefix(name, "bosh-") }))
}
