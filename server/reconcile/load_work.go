package reconcile

import (
	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// workOfBuilds derives what builds want to run.
func (l *loader) workOfBuilds() error {
	for _, b := range l.builds {
		w, err := l.build(b)
		if err != nil {
			return err
		}
		l.world.Work = append(l.world.Work, w)
	}
	return nil
}

func (l *loader) build(b *cf.Build) (Work, error) {
	w := Work{GUID: b.GUID, Domain: lrp.DomainStaging}
	in := desire.StagingIn{Build: b, Stack: l.stacks[b.Lifecycle.Stack]}
	if in.Stack == nil {
		w.Fault = desire.BuildError{ID: "StackNotFound", Detail: "The stack could not be found: " + b.Lifecycle.Stack}.Error()
		return w, nil
	}
	var err error
	in.Package, err = store.Packages.Get(l.tx, b.PackageGUID)
	app := l.apps[b.AppGUID]
	if err != nil || app == nil || in.Package.Digest == "" {
		if err == nil || store.IsNotFound(err) {
			w.Fault, err = desire.StagingFailure("").Error(), nil
		}
		return w, err
	}
	if in.Cache, err = l.tx.BuildCache(b.AppGUID, b.Lifecycle.Stack); err != nil {
		return w, err
	}
	var ok bool
	if in.Owner, _, ok = l.owner(app, ""); !ok {
		w.Fault = desire.StagingFailure("").Error()
		return w, nil
	}
	l.choose(b, &in, &w)
	w.Run = desire.Staging(in)
	return w, nil
}

// choose gives the staging its buildpacks, and has those fetched that are named
// by URL.
func (l *loader) choose(b *cf.Build, in *desire.StagingIn, w *Work) {
	fetched, failed := l.fetches.of(b.GUID)
	c, err := desire.Choose(b.Lifecycle, l.packs, fetched)
	if err != nil {
		w.Fault = err.Error()
		return
	}
	in.Buildpacks, in.Named = c.Buildpacks, c.Named
	if len(c.URLs) > 0 && failed != nil {
		w.Fault = failed.Error()
		return
	}
	if len(c.URLs) > 0 {
		w.Waits = true
		l.fetches.want(b, in.App, c.URLs)
	}
}

// workOfTasks derives what apps' tasks want to run.
func (l *loader) workOfTasks() error {
	var droplets []string
	for _, t := range l.tasks {
		droplets = append(droplets, t.DropletGUID)
	}
	if err := l.loadDroplets(droplets); err != nil {
		return err
	}
	for _, t := range l.tasks {
		l.world.Work = append(l.world.Work, l.task(t))
	}
	return nil
}

const noDroplet = "the task's droplet is not there any longer"

func (l *loader) task(t *cf.Task) Work {
	w := Work{GUID: t.GUID, Domain: lrp.DomainTasks, Cancelled: t.State == cf.TaskCanceling, Begun: t.State == cf.TaskRunning}
	app, d := l.apps[t.AppGUID], l.droplets[t.DropletGUID]
	if app == nil || d == nil {
		w.Fault = noDroplet
		return w
	}
	o, _, ok := l.owner(app, "")
	if !ok {
		w.Fault = noDroplet
		return w
	}
	w.Run = desire.Task(desire.TaskIn{Owner: o, Task: t, Droplet: d})
	return w
}
