package director

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"cupola/server/bosh/config"
	"cupola/server/bosh/interpolate"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/tree"
	"cupola/server/bosh/variables"
	"cupola/store"
	"cupola/store/cf"
)

// Values are those of variables, by name.
type Values = interpolate.Values

// Order is a request for a task. Fields mean nothing to tasks that do not name
// them.
type Order struct {
	// Of a deploy: the manifest with its ops applied, and the values of variables
	// that were given with it.
	Manifest string `json:"manifest,omitempty"`
	Values   Values `json:"values,omitempty"`
	Lenient  bool   `json:"lenient,omitempty"`
	Recreate bool   `json:"recreate,omitempty"`
	// Of a deploy with Recreate, and of a recreate: leave out instances whose containers are
	// newer; the zero time leaves out none.
	CreatedBefore time.Time `json:"created_before,omitzero"`
	// RecreateDisks replaces persistent disks by copies of them.
	RecreateDisks bool `json:"recreate_persistent_disks,omitempty"`
	// Rotate lists variables to regenerate.
	Rotate []string `json:"rotate,omitempty"`
	// Of start, stop, restart and recreate: which instances; all of the group
	// without Index, all of the deployment without Group.
	// A run-errand takes them, too.
	Group string `json:"group,omitempty"`
	Index *int   `json:"index,omitempty"`
	// Of a deploy, stop, restart and recreate: do not run pre-stop and drain scripts.
	SkipDrain bool `json:"skip_drain,omitempty"`
	// Of a deploy and recreate: recreate unresponsive instances without their stop scripts.
	Fix bool `json:"fix,omitempty"`
	// Of a recreate: recreate only the instances that Problems names.
	Repair bool `json:"repair,omitempty"`
	// Of all that changes instances: a count or percentage that replaces the manifest's.
	Canaries    string `json:"canaries,omitempty"`
	MaxInFlight string `json:"max_in_flight,omitempty"`
	// Of a stop: delete the ephemeral disks, as BOSH deletes VMs.
	Hard bool `json:"hard,omitempty"`
	// Of a delete: whether persistent disks go, too.
	DropDisks bool `json:"delete_disks,omitempty"`
	// Of a delete, and of a deploy that removes links: whether it is done although
	// other deployments use them.
	Force bool `json:"force,omitempty"`
	// Of a run-errand.
	Errand      string `json:"errand,omitempty"`
	WhenChanged bool   `json:"when_changed,omitempty"` // not when it has run as it is
	KeepAlive   bool   `json:"keep_alive,omitempty"`   // its ephemeral disks stay for the next run
	// Of an export-release.
	Export *Export `json:"export,omitempty"`
}

// oldEnough reports whether an instance is as old as CreatedBefore wants it. One that has not reached its goal is old enough.
func (o Order) oldEnough(r *cf.BOSHInstance) bool {
	return o.CreatedBefore.IsZero() || r.Phase != cf.BOSHRunning || r.Failure != "" || r.Since.Before(o.CreatedBefore)
}

// Recreates reports whether a recreate gives an instance new containers.
func (o Order) Recreates(r *cf.BOSHInstance) bool {
	return r.Lifecycle == string(manifest.Service) && o.names(r) && o.oldEnough(r)
}

// names reports whether the order is about an instance.
func (o Order) names(r *cf.BOSHInstance) bool {
	return (o.Group == "" || r.Group == o.Group) && (o.Index == nil || r.Index == *o.Index)
}

// Check reads the manifest of a deploy with the configs that apply to it. It returns
// the name of the deployment, what the linter finds, and why the order is refused.
func (o Order) Check(configs config.Set) (deployment string, found manifest.Findings, err error) {
	root, err := tree.LoadBOSH([]byte(o.Manifest))
	if err != nil {
		return "", nil, err
	}
	m, found, err := configs.Lint(root, o.Values, manifest.Options{Lenient: o.Lenient})
	if err == nil {
		err = found.Err()
	}
	if err != nil {
		return "", found, err
	}
	return m.Name, found, variables.CheckRotate(m.Declared(), o.Rotate)
}

// update returns how a group is updated: as the order says, else as u says.
func (o Order) update(u manifest.Update) (manifest.Update, error) {
	for _, of := range []struct {
		name, text string
		count      **manifest.Count
	}{{"canaries", o.Canaries, &u.Canaries}, {"max_in_flight", o.MaxInFlight, &u.MaxInFlight}} {
		if of.text == "" {
			continue
		}
		c, err := manifest.ParseCount(of.text)
		if err != nil {
			return u, fmt.Errorf("invalid %s %q: %w", of.name, of.text, err)
		}
		*of.count = &c
	}
	return u, nil
}

// KeptTasks is how many tasks of a kind are kept, those that have not ended apart.
const KeptTasks = 500

// Ask adds a task for a deployment. The tasks of one deployment are done one
// after the other. A name that nothing has is refused.
func Ask(tx *store.Tx, deployment, user string, kind Kind, o Order) (*cf.BOSHTask, error) {
	if _, err := o.update(manifest.Update{}); err != nil {
		return nil, cf.Unprocessable("%s", err)
	}
	if kind != Deploy {
		if _, _, err := named(tx, deployment, kind, o); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encode what is asked for: %w", err)
	}
	t := &cf.BOSHTask{DeploymentName: deployment, Kind: string(kind), User: user, State: cf.BOSHQueued, Order: text}
	if err := store.BOSHTasks.Insert(tx, t); err != nil {
		return nil, err
	}
	return t, store.BOSHTasks.DropEnded(tx, t.Kind, kept(kind))
}

func orderOf(t *cf.BOSHTask) (o Order, err error) {
	if err := json.Unmarshal(t.Order, &o); err != nil {
		return o, fmt.Errorf("read what task %d is to do: %w", t.Number, err)
	}
	return o, nil
}

// Cancel ends a task. Instances that it was changing stay as they are, and the
// next task changes them again; running scripts and errands are stopped.
func Cancel(tx *store.Tx, t *cf.BOSHTask) error {
	if t.State != cf.BOSHQueued && t.State != cf.BOSHProcessing {
		return cf.Unprocessable("Cannot cancel task %d: invalid state (%s)", t.Number, t.State)
	}
	if t.State == cf.BOSHProcessing {
		if err := abort(tx, t, fmt.Sprintf("task %d was cancelled", t.Number)); err != nil {
			return err
		}
	}
	t.State, t.Result, t.EndedAt = cf.BOSHCancelled, fmt.Sprintf("Task %d cancelled", t.Number), tx.Now
	return endTask(tx, t)
}

// abort ends what a task does to instances, and says why.
func abort(tx *store.Tx, t *cf.BOSHTask, why string) error {
	d, err := store.BOSHDeployments.First(tx, store.Query{Where: map[string][]string{"names": {t.DeploymentName}}})
	if store.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	rows, err := store.BOSHInstances.By(tx, "deployment_guids", d.GUID)
	if err != nil {
		return err
	}
	calls, err := callsOf(tx, rows)
	for _, r := range rows {
		for _, c := range calls[r.GUID] {
			if c.State == cf.BOSHCalling {
				err = errors.Join(err, store.BOSHCalls.Delete(tx, c.GUID))
			}
		}
		if r.Chosen {
			if r.Chosen = false; !r.UpToDate() {
				r.Failure = why
			}
			err = errors.Join(err, store.BOSHInstances.Update(tx, r), store.BOSHEvents.End(tx, t.Number, ofInstance, instanceName(r), why))
		}
	}
	return err
}
