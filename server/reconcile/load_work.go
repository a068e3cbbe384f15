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
		if l.ofDamagedApp(b.GUID, b.AppGUID) || b.DropletGUID != "" { // the release command runs
			continue
		}
		w, err := l.build(b)
		if err != nil {
			return err
		}
		l.world.Work = append(l.world.Work, w)
	}
	return nil
}

// Why builds do not start whose rows are gone, or damaged.
var (
	noPackage = desire.CannotStage("the package or its files are not there any longer: push the app again")
	noOwner   = desire.CannotStage("the app's space or organization cannot be read")
)

func (l *loader) build(b *cf.Build) (Work, error) {
	w := Work{GUID: b.GUID, Domain: lrp.DomainStaging}
	if b.Lifecycle.Type == cf.LifecycleDocker {
		return l.dockerBuild(b, w)
	}
	in := desire.StagingIn{Build: b}
	image, err := l.stackOf(b, &in)
	if err != nil {
		w.Fault = err.Error()
		return w, nil
	}
	in.Package, err = store.Packages.Get(l.tx, b.PackageGUID)
	app := l.apps[b.AppGUID]
	if err != nil || app == nil || in.Package.Digest == "" {
		if err == nil || store.IsNotFound(err) || store.IsDamaged(err) {
			w.Fault, err = noPackage.Error(), nil
		}
		return w, err
	}
	if in.Cache, err = store.BuildCaches.Get(l.tx, b.AppGUID, desire.CacheKey(b.Lifecycle)); err != nil {
		return w, err
	}
	var ok bool
	if in.Owner, _, ok = l.owner(app, ""); !ok {
		w.Fault = noOwner.Error()
		return w, nil
	}
	l.choose(b, &in, image, &w)
	w.Run = desire.Staging(in)
	return w, l.findReusable(in, &w)
}

// dockerBuild starts the pull of a build's image; nothing runs for it.
func (l *loader) dockerBuild(b *cf.Build, w Work) (Work, error) {
	p, err := store.Packages.Get(l.tx, b.PackageGUID)
	app := l.apps[b.AppGUID]
	if store.IsNotFound(err) || store.IsDamaged(err) || err == nil && app == nil {
		w.Fault = noPackage.Error()
		return w, nil
	}
	if err != nil {
		return w, err
	}
	if failed := l.fetches.failed(b.GUID); failed != nil {
		w.Fault = failed.Error()
		return w, nil
	}
	w.Waits = true
	l.fetches.want(b, l.orgOf(app), needed{stack: desire.ImageScheme + p.Image})
	return w, nil
}

// stackOf gives the staging its stack. image is the reference of one that is
// not there yet.
func (l *loader) stackOf(b *cf.Build, in *desire.StagingIn) (image string, err error) {
	if in.Stack = l.stacks[b.Lifecycle.Stack]; in.Stack != nil {
		return "", nil
	}
	if !desire.IsImage(b.Lifecycle.Stack) {
		return "", desire.StackNotFound(b.Lifecycle.Stack)
	}
	in.Stack = &cf.Stack{Name: b.Lifecycle.Stack}
	if b.Lifecycle.Image == nil {
		return b.Lifecycle.Stack, nil
	}
	in.Stack.Compat = b.Lifecycle.Image.Compat
	return "", nil
}

// choose gives the staging its buildpacks. It waits for the images, if there are any
// to pull.
func (l *loader) choose(b *cf.Build, in *desire.StagingIn, image string, w *Work) {
	c, err := desire.Choose(b.Lifecycle, l.packs)
	if err != nil {
		w.Fault = err.Error()
		return
	}
	in.Buildpacks, in.Named = c.Buildpacks, c.Named
	if image == "" && len(c.Missing) == 0 {
		return
	}
	if failed := l.fetches.failed(b.GUID); failed != nil {
		w.Fault = failed.Error()
		return
	}
	w.Waits = true
	l.fetches.want(b, l.orgOf(in.App), needed{stack: image, buildpacks: c.Missing})
}

// workOfTasks derives what apps' tasks want to run.
func (l *loader) workOfTasks() error {
	var droplets []string
	for _, t := range l.tasks {
		droplets = append(droplets, t.DropletGUID)
	}
	rows, err := store.Droplets.By(l.tx, "guids", droplets...)
	if err != nil {
		return err
	}
	if err := l.addDroplets(rows); err != nil {
		return err
	}
	for _, t := range l.tasks {
		if l.ofDamagedApp(t.GUID, t.AppGUID) {
			continue
		}
		l.world.Work = append(l.world.Work, l.task(t))
	}
	return nil
}

const noDroplet = "the task's droplet is not staged, or not there any longer"

func (l *loader) task(t *cf.Task) Work {
	w := Work{GUID: t.GUID, Domain: lrp.DomainTasks, Cancelled: t.State == cf.TaskCanceling, Begun: t.State == cf.TaskRunning}
	if w.Overdue = overdue(t, l.tx.Now); w.Overdue != "" {
		return w
	}
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
	w.Run = desire.Task(desire.TaskIn{Owner: o, Task: t, Droplet: d, Package: l.credentialOf(d)})
	return w
}
