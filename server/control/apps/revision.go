package apps

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/services"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// maxRevision is the last version of Cloud Controller, after which it begins
// again.
const maxRevision = 9999

// latestRevision is nil for an app without one, or with revisions disabled.
func latestRevision(c *control.Session, app *cf.App) (*cf.Revision, error) {
	if !app.RevisionsOn {
		return nil, nil
	}
	r, err := store.Revisions.First(c.Tx, store.Query{Where: map[string][]string{"app_guids": {app.GUID}}, Desc: true})
	if store.IsNotFound(err) {
		return nil, nil
	}
	return r, err
}

// revise returns the revision that an app runs from its next start on: the latest one if
// nothing changed since, else a new one. It is nil if the app has no revisions.
func revise(c *control.Session, app *cf.App) (*cf.Revision, error) {
	if !app.RevisionsOn || app.DropletGUID == "" {
		return nil, nil
	}
	latest, err := latestRevision(c, app)
	if err != nil {
		return nil, err
	}
	next, err := revisionOf(c, app)
	if err != nil {
		return nil, err
	}
	if latest == nil {
		next.Description = "Initial revision."
		return next, addRevision(c, app, next, nil)
	}
	reasons := changes(latest, next)
	if len(reasons) == 0 {
		return latest, nil
	}
	next.Description = strings.Join(reasons, " ")
	return next, addRevision(c, app, next, latest)
}

// rollBack makes a revision that is like an older one.
func rollBack(c *control.Session, app *cf.App, to *cf.Revision) (*cf.Revision, error) {
	latest, err := latestRevision(c, app)
	if err != nil {
		return nil, err
	}
	next := &cf.Revision{AppGUID: app.GUID, DropletGUID: to.DropletGUID, Env: to.Env, Commands: to.Commands, Sidecars: to.Sidecars}
	reasons := changes(latest, next)
	if len(reasons) == 0 {
		return nil, cf.Unprocessable("Unable to rollback. The code and configuration you are rolling back to is the same as the deployed revision.")
	}
	next.Description = strings.Join(append(reasons, fmt.Sprintf("Rolled back to revision %d.", to.Version)), " ")
	return next, addRevision(c, app, next, latest)
}

// revisionOf is what an app would run if it was started now. Of several web
// processes the newest one counts.
func revisionOf(c *control.Session, app *cf.App) (*cf.Revision, error) {
	processes, err := store.Processes.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return nil, err
	}
	r := &cf.Revision{AppGUID: app.GUID, DropletGUID: app.DropletGUID, Env: app.Env, Commands: map[string]string{}}
	for _, p := range processes {
		r.Commands[p.Type] = p.Command
	}
	for _, s := range Sidecars(app, processes...) {
		r.Sidecars = append(r.Sidecars, s.Sidecar)
	}
	slices.SortFunc(r.Sidecars, func(a, b cf.Sidecar) int { return cmp.Compare(a.Name, b.Name) })
	return r, nil
}

// addRevision numbers a revision and adds it, in the place of one that had the
// number before.
func addRevision(c *control.Session, app *cf.App, r, latest *cf.Revision) error {
	r.Version = 1
	if latest != nil && latest.Version < maxRevision {
		r.Version = latest.Version + 1
	}
	old, err := store.Revisions.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return err
	}
	for _, o := range old {
		if o.Version == r.Version {
			if err := store.Revisions.Delete(c.Tx, o.GUID); err != nil {
				return err
			}
		}
	}
	if err := store.Revisions.Insert(c.Tx, r); err != nil {
		return err
	}
	c.Note(app, "Creating revision for app with guid %s", app.GUID)
	return revisionEvent(c, audit.AppRevisionCreate, app, r)
}

// RevisionVarsShown records that the variables of a revision of an app were shown.
func RevisionVarsShown(c *control.Session, app *cf.App, r *cf.Revision) error {
	return revisionEvent(c, audit.AppRevisionVarsShow, app, r)
}

func revisionEvent(c *control.Session, kind audit.Type, app *cf.App, r *cf.Revision) error {
	return c.AuditApp(kind, app, audit.Data{"revision_guid": r.GUID, "revision_version": r.Version})
}

// changes tells in Cloud Controller's words how two revisions differ.
func changes(was, next *cf.Revision) []string {
	reasons := control.Must(was.DropletGUID == next.DropletGUID, "New droplet deployed.",
		maps.Equal(was.Env, next.Env), "New environment variables deployed.",
		slices.EqualFunc(was.Sidecars, next.Sidecars, sameSidecar), "Sidecars updated.")
	for kind, command := range next.Commands {
		before, there := was.Commands[kind]
		switch {
		case !there:
			reasons = append(reasons, fmt.Sprintf("New process type '%s' added.", kind))
		case before != command:
			reasons = append(reasons, fmt.Sprintf("Custom start command %s for '%s' process.", commandChange(before, command), kind))
		}
	}
	for kind := range was.Commands {
		if _, there := next.Commands[kind]; !there {
			reasons = append(reasons, fmt.Sprintf("Process type '%s' removed.", kind))
		}
	}
	slices.Sort(reasons)
	return reasons
}

func commandChange(before, command string) string {
	switch {
	case before == "":
		return "added"
	case command == "":
		return "removed"
	}
	return "updated"
}

// sameSidecar reports whether two sidecars run the same. It ignores their GUIDs: a
// sidecar that was deleted and created again has another one.
func sameSidecar(a, b cf.Sidecar) bool {
	return a.Name == b.Name && a.Command == b.Command && a.MemoryMB == b.MemoryMB && slices.Equal(a.ProcessTypes, b.ProcessTypes)
}

// applySidecarsOf gives an app the sidecars of a revision, and no others but those
// that its droplet declares: revisions of earlier versions have only the user's.
func applySidecarsOf(c *control.Session, app *cf.App, r *cf.Revision) error {
	processes, err := store.Processes.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return err
	}
	for _, p := range processes {
		declared := slices.Clone(p.Sidecars)
		p.Sidecars = nil
		for _, s := range r.Sidecars {
			if slices.Contains(s.ProcessTypes, p.Type) {
				p.Sidecars = append(p.Sidecars, s)
			}
		}
		if !slices.ContainsFunc(r.Sidecars, func(s cf.Sidecar) bool { return s.Origin == fromBuildpack }) {
			p.Sidecars = append(p.Sidecars, control.Without(declared, func(s cf.Sidecar) bool { return s.Origin != fromBuildpack })...)
		}
		if err := control.OrElse(SidecarFaults(p), store.Processes.Update(c.Tx, p)); err != nil {
			return err
		}
	}
	return nil
}

// runAs assigns the app's droplet and its latest revision to all its processes, which
// run them from their next start on.
func runAs(c *control.Session, app *cf.App) error {
	r, err := latestRevision(c, app)
	if err != nil {
		return err
	}
	processes, err := store.Processes.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return err
	}
	var like cf.Process
	if err := startedWith(c, app, &like); err != nil {
		return err
	}
	for _, p := range processes {
		p.DropletGUID, p.Placement, p.Services, p.BindingForm = app.DropletGUID, like.Placement, like.Services, like.BindingForm
		if r != nil {
			p.RevisionGUID = r.GUID
		}
		if err := store.Processes.Update(c.Tx, p); err != nil {
			return err
		}
	}
	return nil
}

// startedWith notes in a process with what it starts: the placement of the app,
// the services that its app is bound to, and how it learns of those.
func startedWith(c *control.Session, app *cf.App, p *cf.Process) error {
	placement, err := c.Tx.PlacementOf(app)
	if err != nil {
		return err
	}
	list, err := services.BoundTo(c, app)
	p.Placement, p.Services, p.BindingForm = placement, desire.StartedWith(list), app.BindingForm
	return err
}
