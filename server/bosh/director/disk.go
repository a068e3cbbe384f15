package director

import (
	"context"
	"time"

	"cupola/server/bosh/agent"
	"cupola/store"
	"cupola/store/cf"
)

// KeepOrphans is how long an orphaned disk is kept, as by BOSH's director.
const KeepOrphans = 5 * 24 * time.Hour

// expired returns the orphaned disks that are kept no longer, and when the next one is not.
func expired(disks []*cf.BOSHDisk, now time.Time) (due []*cf.BOSHDisk, next time.Time) {
	for _, d := range disks {
		if d.OrphanedAt.IsZero() {
			continue
		}
		switch at := d.OrphanedAt.Add(KeepOrphans); {
		case !at.After(now):
			due = append(due, d)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	return due, next
}

// deleteExpired deletes orphaned disks that are kept no longer. Their volumes are removed
// like those of all deleted disks.
func (l *Loop) deleteExpired(ctx context.Context) error {
	return l.Store.Write(ctx, func(tx *store.Tx) error {
		all, err := store.BOSHDisks.All(tx)
		if err != nil {
			return err
		}
		due, _ := expired(all, tx.Now)
		for _, d := range due {
			if err := DeleteDisk(tx, "bosh director", d); err != nil {
				return err
			}
		}
		return nil
	})
}

// DeleteDisk deletes a persistent disk that is not an instance's; the loop removes
// what was on it.
func DeleteDisk(tx *store.Tx, user string, d *cf.BOSHDisk) error {
	if d.OrphanedAt.IsZero() {
		return cf.Unprocessable("Disk %s is the disk of %s/%d of deployment %s: only an orphaned disk can be deleted", d.GUID, d.Group, d.Index, d.DeploymentName)
	}
	if err := recordDisk(tx, &cf.BOSHTask{User: user}, "delete", d, nil); err != nil {
		return err
	}
	return store.BOSHDisks.Delete(tx, d.GUID)
}

// AttachDisk gives a stopped instance an orphaned disk; the one that it has is orphaned.
func AttachDisk(tx *store.Tx, user string, d *cf.BOSHDisk, deployment, group string, index int) error {
	if d.OrphanedAt.IsZero() {
		return cf.Unprocessable("Disk %s is the disk of %s/%d of deployment %s: only an orphaned disk can be attached", d.GUID, d.Group, d.Index, d.DeploymentName)
	}
	_, rows, err := named(tx, deployment, Stop, Order{Group: group, Index: &index})
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.Group == group && r.Index == index {
			return attach(tx, &cf.BOSHTask{User: user}, deployment, r, d)
		}
	}
	return store.BOSHInstances.NotFound()
}

func attach(tx *store.Tx, by *cf.BOSHTask, deployment string, r *cf.BOSHInstance, d *cf.BOSHDisk) error {
	if err := checkAtRest(tx, deployment, r); err != nil {
		return err
	}
	row, err := store.BOSHSpecs.Get(tx, r.Next)
	if err != nil {
		return err
	}
	spec, err := agent.Decode(row.Text)
	switch {
	case err != nil:
		return err
	case spec.StoreMB == 0:
		return cf.Unprocessable("Instance group '%s' has no persistent_disk: add it to the manifest, and deploy first", r.Group)
	case d.SizeMB > spec.StoreMB:
		return cf.Unprocessable("Disk %s has %d MB, more than the %d MB of persistent_disk of instance group '%s': enlarge that, and deploy first", d.GUID, d.SizeMB, spec.StoreMB, r.Group)
	}
	if r.DiskGUID != "" {
		if err := orphan(tx, by, r.DiskGUID); err != nil {
			return err
		}
	}
	d.DeploymentName, d.Group, d.Index, d.AZ, d.OrphanedAt = deployment, r.Group, r.Index, r.AZ, time.Time{}
	r.DiskGUID = d.GUID
	if err := recordDisk(tx, by, "attach", d, r); err != nil {
		return err
	}
	if err := store.BOSHDisks.Update(tx, d); err != nil {
		return err
	}
	return store.BOSHInstances.Update(tx, r)
}

// OrphanDisk orphans a disk. A stopped instance that has it gets an empty one.
func OrphanDisk(tx *store.Tx, user string, d *cf.BOSHDisk) error {
	if !d.OrphanedAt.IsZero() {
		return nil
	}
	by := &cf.BOSHTask{User: user}
	r, err := userOf(tx, d)
	if err != nil {
		return err
	}
	if r != nil {
		if err := checkAtRest(tx, d.DeploymentName, r); err != nil {
			return err
		}
		empty := &cf.BOSHDisk{DeploymentName: d.DeploymentName, Group: r.Group, Index: r.Index, AZ: r.AZ, SizeMB: d.SizeMB}
		if err := store.BOSHDisks.Insert(tx, empty); err != nil {
			return err
		}
		if err := recordDisk(tx, by, "create", empty, r); err != nil {
			return err
		}
		r.DiskGUID = empty.GUID
		if err := store.BOSHInstances.Update(tx, r); err != nil {
			return err
		}
	}
	return orphan(tx, by, d.GUID)
}

// userOf returns the instance that has a disk; nil if none has.
func userOf(tx *store.Tx, d *cf.BOSHDisk) (*cf.BOSHInstance, error) {
	all, err := store.BOSHInstances.All(tx)
	for _, r := range all {
		if r.DiskGUID == d.GUID {
			return r, err
		}
	}
	return nil, err
}

// checkAtRest rejects an instance that is not stopped, or that a task may change.
func checkAtRest(tx *store.Tx, deployment string, r *cf.BOSHInstance) error {
	open, err := store.BOSHTasks.Open(tx)
	if err != nil {
		return err
	}
	for _, t := range open {
		if t.DeploymentName == deployment {
			return cf.Unprocessable("Task %d changes deployment '%s': wait for its end", t.Number, deployment)
		}
	}
	if r.Goal != cf.BOSHHalted || r.Phase != cf.BOSHStopped {
		return cf.Unprocessable("Instance %s/%d is not stopped: stop it first", r.Group, r.Index)
	}
	return nil
}
