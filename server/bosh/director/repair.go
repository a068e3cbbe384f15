package director

import (
	"fmt"
	"slices"

	"cupola/runtime/lrp"
	"cupola/server/bosh/manifest"
	"cupola/store"
	"cupola/store/cf"
)

// Problem is what is wrong with an instance or a disk of a deployment.
type Problem struct {
	Type        string `json:"type"` // BOSH's word: missing_vm, unresponsive_agent, inactive_disk; or failed_change
	Resource    string `json:"resource"`
	Description string `json:"description"`
	Resolution  string `json:"resolution"` // what a repair does

	instance string // GUID; "" for a disk
	disk     *cf.BOSHDisk
}

// Problems finds what is wrong with a deployment, as far as no task is changing it.
func Problems(tx *store.Tx, d *cf.BOSHDeployment) ([]Problem, error) {
	rows, err := store.BOSHInstances.By(tx, "deployment_guids", d.GUID)
	if err != nil {
		return nil, err
	}
	return New(Config{}).problems(tx, d, rows)
}

const recreates = "recreate the instance without its stop scripts"

func (l *Loop) problems(tx *store.Tx, d *cf.BOSHDeployment, rows []*cf.BOSHInstance) (all []Problem, err error) {
	unresponsive, err := l.unresponsive(tx, d, rows)
	if err != nil {
		return nil, err
	}
	actuals, err := store.ActualLRPs.By(tx, "domains", lrp.BOSHDomain(d.Name))
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		p := Problem{Resource: fmt.Sprintf("%s/%d (%s)", r.Group, r.Index, r.GUID), Resolution: recreates, instance: r.GUID}
		switch {
		case r.Chosen:
		case slices.Contains(unresponsive, r.GUID) && !hasContainer(actuals, r):
			p.Type, p.Description = "missing_vm", "no container of it runs"
			all = append(all, p)
		case slices.Contains(unresponsive, r.GUID):
			p.Type, p.Description = "unresponsive_agent", "a process of it has no running container"
			all = append(all, p)
		case r.Failure != "" && r.Lifecycle == string(manifest.Service) && r.Goal == cf.BOSHStarted:
			p.Type, p.Description = "failed_change", r.Failure
			all = append(all, p)
		}
	}
	unused, err := unusedDisks(tx, d, rows)
	return append(all, unused...), err
}

func hasContainer(actuals []*lrp.Actual, r *cf.BOSHInstance) bool {
	return slices.ContainsFunc(actuals, func(a *lrp.Actual) bool { return a.Owner.GUID == r.GUID && a.State == lrp.Running })
}

// unusedDisks are disks that are not orphaned, but that no instance has.
func unusedDisks(tx *store.Tx, d *cf.BOSHDeployment, rows []*cf.BOSHInstance) (all []Problem, err error) {
	disks, err := store.BOSHDisks.By(tx, "deployment_names", d.Name)
	for _, disk := range disks {
		if disk.OrphanedAt.IsZero() && !slices.ContainsFunc(rows, func(r *cf.BOSHInstance) bool { return r.DiskGUID == disk.GUID }) {
			all = append(all, Problem{Type: "inactive_disk", Resource: disk.GUID, Resolution: "orphan the disk", disk: disk,
				Description: fmt.Sprintf("no instance has the disk of %s/%d", disk.Group, disk.Index)})
		}
	}
	return all, err
}

// repair has a task recreate the instances that something is wrong with, and orphans disks
// that no instance has.
func (l *Loop) repair(tx *store.Tx, t *cf.BOSHTask, d *cf.BOSHDeployment, rows []*cf.BOSHInstance, p *taskPlan) error {
	problems, err := l.problems(tx, d, rows)
	if err != nil {
		return err
	}
	p.Result = fmt.Sprintf("%d problems found", len(problems))
	for _, found := range problems {
		if found.disk != nil {
			if err := orphan(tx, t, found.disk.GUID); err != nil {
				return err
			}
			continue
		}
		at := slices.IndexFunc(rows, func(r *cf.BOSHInstance) bool { return r.GUID == found.instance })
		setDesired(Recreate, rows[at])
		p.Unresponsive, p.Discard = append(p.Unresponsive, found.instance), append(p.Discard, found.instance)
		if err := store.BOSHInstances.Update(tx, rows[at]); err != nil {
			return err
		}
	}
	return nil
}
