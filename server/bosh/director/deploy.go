package director

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"go.yaml.in/yaml/v3"

	"cupola/server/bosh"
	"cupola/server/bosh/config"
	"cupola/server/bosh/interpolate"
	"cupola/server/bosh/link"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/tree"
	"cupola/server/bosh/variables"
	"cupola/store"
	"cupola/store/cf"
)

// deploy is a deploy being prepared.
type deploy struct {
	task  *cf.BOSHTask
	order Order
	// existing are the variables that the deployment has, and given the values
	// that users gave, now or before.
	existing map[string]variables.Value
	given    interpolate.Values
	made     map[string]variables.Value
	m        *manifest.Manifest // with all values
	full     *yaml.Node         // what m was read from
	resolved *bosh.Deployment
	configs  config.Set
}

func (l *Loop) prepareDeploy(ctx context.Context, t *cf.BOSHTask, o Order) error {
	d := &deploy{task: t, order: o}
	say := l.progress(ctx, t)
	say("Preparing deployment", "manifest")
	root, err := tree.LoadBOSH([]byte(o.Manifest))
	if err != nil {
		return err
	}
	if err := l.Store.Read(ctx, d.loadVariables); err != nil {
		return err
	}
	if err := d.fill(ctx, root); err != nil {
		return err
	}
	d.resolved, err = l.Resolve(ctx, Request{Manifest: d.m, Say: say, Step: l.steps(ctx, t), Shared: l.shared(ctx)})
	if err != nil {
		return err
	}
	for _, line := range d.resolved.Ignored {
		say("Ignoring monit file", line)
	}
	say("", "")
	return l.Store.Write(ctx, func(tx *store.Tx) error { return l.writeDeploy(tx, d) })
}

// progress reports progress in the task's events; each call ends the previous
// stage.
func (l *Loop) progress(ctx context.Context, t *cf.BOSHTask) func(stage, subject string) {
	var was *cf.BOSHTaskEvent
	return func(stage, subject string) {
		err := l.Store.Write(ctx, func(tx *store.Tx) error {
			if was != nil {
				was.GUID, was.State, was.CreatedAt = "", "finished", time.Time{}
				if err := store.BOSHTaskEvents.Insert(tx, was); err != nil {
					return err
				}
			}
			if was = nil; stage == "" {
				return nil
			}
			was = &cf.BOSHTaskEvent{TaskGUID: t.GUID, Stage: stage, Subject: subject, State: "started"}
			return store.BOSHTaskEvents.Insert(tx, was)
		})
		if err != nil && ctx.Err() == nil {
			l.Log.WarnContext(ctx, "event of a task was not written", "task", t.Number, "err", err)
		}
	}
}

// steps reports concurrent work in the task's events.
func (l *Loop) steps(ctx context.Context, t *cf.BOSHTask) func(stage, subject string) func(error) {
	return func(stage, subject string) func(error) {
		put := func(state, detail string) {
			err := l.Store.Write(ctx, func(tx *store.Tx) error {
				return store.BOSHTaskEvents.Insert(tx, &cf.BOSHTaskEvent{TaskGUID: t.GUID, Stage: stage, Subject: subject, State: state, Detail: detail})
			})
			if err != nil && ctx.Err() == nil {
				l.Log.WarnContext(ctx, "event of a task was not written", "task", t.Number, "err", err)
			}
		}
		put("started", "")
		return func(err error) {
			if err != nil {
				put("failed", err.Error())
			} else {
				put("finished", "")
			}
		}
	}
}

// loadVariables reads the values that the deployment has from before, and the configs
// that apply to it.
func (d *deploy) loadVariables(tx *store.Tx) error {
	d.existing, d.given = map[string]variables.Value{}, interpolate.Values{}
	configs, err := Configs(tx)
	if err != nil {
		return err
	}
	d.configs = configs
	dep, err := store.BOSHDeployments.First(tx, store.Query{Where: map[string][]string{"names": {d.task.DeploymentName}}})
	if store.IsNotFound(err) {
		err = nil
	} else if err == nil {
		err = d.loadRows(tx, dep.GUID)
	}
	maps.Copy(d.given, d.order.Values)
	return err
}

func (d *deploy) loadRows(tx *store.Tx, deployment string) error {
	rows, err := store.BOSHVariables.By(tx, "deployment_guids", deployment)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.Type == "" {
			v, err := tree.DecodeJSON(r.Value)
			if err != nil {
				return fmt.Errorf("read the variable %s: %w", r.Name, err)
			}
			d.given[r.Name] = v
			continue
		}
		var v variables.Value
		if err := json.Unmarshal(r.Value, &v); err != nil {
			return fmt.Errorf("read the variable %s: %w", r.Name, err)
		}
		d.existing[r.Name] = v
	}
	return nil
}

// fill gives the manifest its values: those that were given, then those that are
// made.
func (d *deploy) fill(ctx context.Context, root *yaml.Node) error {
	f := bosh.Filling{Configs: d.configs, Given: d.given, Existing: d.existing, Rotate: d.order.Rotate, Lenient: d.order.Lenient}
	filled, err := f.Fill(ctx, root)
	if err != nil {
		return err
	}
	d.m, d.full, d.made = filled.Manifest, filled.Tree, filled.Made
	return nil
}

// shared finds the links that another deployment shares.
func (l *Loop) shared(ctx context.Context) func(string) ([]link.Provider, bool) {
	return func(name string) (providers []link.Provider, exists bool) {
		err := l.Store.Read(ctx, func(tx *store.Tx) error {
			d, err := store.BOSHDeployments.First(tx, store.Query{Where: map[string][]string{"names": {name}}})
			if err != nil {
				return err
			}
			exists = true
			if len(d.Provides) == 0 {
				return nil
			}
			return json.Unmarshal(d.Provides, &providers)
		})
		if err != nil && !store.IsNotFound(err) {
			l.Log.WarnContext(ctx, "links of a deployment were not read", "deployment", name, "err", err)
		}
		return providers, exists
	}
}

// writeDeploy writes all that a deploy came to.
func (l *Loop) writeDeploy(tx *store.Tx, d *deploy) error {
	if row, err := unplanned(tx, d.task); err != nil || row == nil {
		return err
	}
	if err := d.checkProvided(tx); err != nil {
		return err
	}
	dep, err := d.writeDeployment(tx)
	if err != nil {
		return err
	}
	rows, err := store.BOSHInstances.By(tx, "deployment_guids", dep.GUID)
	if err != nil {
		return err
	}
	w := newRowWriter(tx, d, dep, rows)
	w.azs = l.AZ
	if err := w.migrate(); err != nil {
		return err
	}
	p := taskPlan{SkipDrain: d.order.SkipDrain}
	if d.order.Fix {
		if p.Unresponsive, err = l.unresponsive(tx, dep, rows); err != nil {
			return err
		}
	}
	w.renew = p.Unresponsive
	if d.order.Recreate {
		for _, r := range rows {
			if d.order.oldEnough(r) {
				w.renew = append(w.renew, r.GUID)
			}
		}
	}
	p.Discard = w.renew
	for n := range d.resolved.Groups {
		g := &d.resolved.Groups[n]
		of, err := groupOf(d.m, d.m.Group(g.Name), d.order)
		if err != nil {
			return err
		}
		p.Groups = append(p.Groups, of)
		if err := w.group(g); err != nil {
			return err
		}
	}
	if err := w.deleteUnwanted(); err != nil {
		return err
	}
	p.NewDisks = w.newDisks
	p.addMissing(rows)
	return plan(tx, d.task, p)
}

func guidsOf(rows []*cf.BOSHInstance) (guids []string) {
	for _, r := range rows {
		guids = append(guids, r.GUID)
	}
	return guids
}

// writeDeployment writes the deployment and its variables. Its version counts
// when the manifest is another.
func (d *deploy) writeDeployment(tx *store.Tx) (*cf.BOSHDeployment, error) {
	provides, err := json.Marshal(d.resolved.Provides)
	if err != nil {
		return nil, fmt.Errorf("encode the links of %s: %w", d.m.Name, err)
	}
	aliases, err := json.Marshal(d.resolved.Aliases)
	if err != nil {
		return nil, fmt.Errorf("encode the names of %s: %w", d.m.Name, err)
	}
	consumes := make([]cf.BOSHLink, len(d.resolved.Consumes))
	for i, f := range d.resolved.Consumes {
		consumes[i] = cf.BOSHLink(f)
	}
	dep, err := store.BOSHDeployments.First(tx, store.Query{Where: map[string][]string{"names": {d.m.Name}}})
	switch {
	case store.IsNotFound(err):
		dep = &cf.BOSHDeployment{Name: d.m.Name, Version: 1, Manifest: []byte(d.order.Manifest), Provides: provides, Consumes: consumes, Aliases: aliases, Configs: d.used()}
		err = store.BOSHDeployments.Insert(tx, dep)
	case err == nil:
		if string(dep.Manifest) != d.order.Manifest {
			dep.Version++
		}
		dep.Manifest, dep.Provides, dep.Consumes, dep.Aliases, dep.Configs = []byte(d.order.Manifest), provides, consumes, aliases, d.used()
		err = store.BOSHDeployments.Update(tx, dep)
	}
	if err != nil {
		return nil, err
	}
	return dep, d.writeVariables(tx, dep.GUID)
}

// writeVariables makes the rows of variables what they are now.
func (d *deploy) writeVariables(tx *store.Tx, deployment string) error {
	old, err := store.BOSHVariables.By(tx, "deployment_guids", deployment)
	if err != nil {
		return err
	}
	rows := map[string]*cf.BOSHVariable{}
	for _, r := range old {
		rows[r.Name] = r
	}
	types := map[string]string{}
	for _, v := range d.m.Variables {
		types[v.Name] = v.Type
	}
	put := func(name, kind string, value any) error {
		text, err := tree.EncodeJSON(value)
		if err != nil {
			return fmt.Errorf("encode the variable %s: %w", name, err)
		}
		r, ok := rows[name]
		delete(rows, name)
		if !ok {
			return store.BOSHVariables.Insert(tx, &cf.BOSHVariable{DeploymentGUID: deployment, Name: name, Type: kind, Value: text})
		}
		if r.Type == kind && string(r.Value) == string(text) {
			return nil
		}
		r.Type, r.Value = kind, text
		return store.BOSHVariables.Update(tx, r)
	}
	for name, v := range d.made {
		err = errors.Join(err, put(name, types[name], v))
	}
	for name, v := range d.given {
		if _, declared := d.made[name]; !declared {
			err = errors.Join(err, put(name, "", v))
		}
	}
	for _, r := range rows {
		err = errors.Join(err, store.BOSHVariables.Delete(tx, r.GUID))
	}
	return err
}
