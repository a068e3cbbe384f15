package director

import (
	"context"
	"errors"
	"fmt"

	"cupola/rootfs/volume"
	"cupola/store"
	"cupola/store/cf"
)

// renewDisks replaces the disks of instances at rest by copies of them.
func (l *Loop) renewDisks(ctx context.Context, t *cf.BOSHTask, copies []diskCopy) (err error) {
	for _, c := range copies {
		from := c.Instance.DiskGUID
		done := l.steps(ctx, t)("Copying disks", fmt.Sprintf("%s of %s/%d to %s", from, c.Instance.Group, c.Instance.Index, c.To))
		fault := tried(func() error { return l.Volumes.Copy(diskVolume(from), diskVolume(c.To)) })
		if errors.Is(fault, volume.ErrNone) { // it is empty, and so is the new one: they are made when they are used
			fault = nil
		}
		done(fault)
		err = errors.Join(err, l.Store.Write(ctx, func(tx *store.Tx) error { return replaceDisk(tx, t, c, fault) }))
	}
	l.isSwept = false // a copy belongs to no instance if its task was cancelled meanwhile
	return err
}

// replaceDisk gives an instance the copy of its disk, and orphans the old one. Without a
// copy, because of a fault, it keeps its disk, and the task fails once it is up.
func replaceDisk(tx *store.Tx, t *cf.BOSHTask, c diskCopy, fault error) error {
	task, err := store.BOSHTasks.Get(tx, t.GUID)
	if err != nil || task.State != cf.BOSHProcessing {
		return err
	}
	r, err := store.BOSHInstances.Get(tx, c.Instance.GUID)
	if err != nil {
		return err
	}
	if fault != nil {
		return keepsDisk(tx, task, r, fault)
	}
	d, err := store.BOSHDisks.Get(tx, r.DiskGUID)
	if err != nil {
		return err
	}
	for _, e := range orphanEvents(task, r) {
		err = errors.Join(err, store.BOSHTaskEvents.Insert(tx, &e))
	}
	if err = errors.Join(err, orphan(tx, task, d.GUID)); err != nil {
		return err
	}
	d.Resource, r.DiskGUID = cf.Resource{GUID: c.To}, c.To
	return errors.Join(store.BOSHDisks.Insert(tx, d), recordDisk(tx, task, "create", d, r), store.BOSHInstances.Update(tx, r))
}

// keepsDisk writes down in a task's plan that an instance has no new disk.
func keepsDisk(tx *store.Tx, t *cf.BOSHTask, r *cf.BOSHInstance, why error) error {
	p, err := decodePlan(t.Plan)
	if err != nil {
		return err
	}
	delete(p.NewDisks, r.GUID)
	p.Faults = append(p.Faults, fmt.Sprintf("'%s/%d (%s)' keeps its old disk: %s", r.Group, r.Index, r.GUID, why))
	return plan(tx, t, p)
}
