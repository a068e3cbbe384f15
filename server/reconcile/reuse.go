package reconcile

import (
	"encoding/json"

	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// A push that changes nothing needs no staging: if a package is built for the first time
// and its build depends on the same as the app's last one, it takes the droplet of that. A
// further build of a package, which `cf restage` makes, is always staged, and so is one
// whose build cache was cleared or that downloads a buildpack.

// findReusable notes what a build is staged from, and the droplet that it can take.
func (l *loader) findReusable(in desire.StagingIn, w *Work) (err error) {
	b := in.Build
	if l.versions == nil || w.Fault != "" || w.Waits || b.Inputs != "" {
		return nil
	}
	w.Inputs, err = l.inputs(in, w.Run)
	if err != nil || w.Inputs == "" || in.Cache == "" {
		return err
	}
	n, err := store.Builds.Count(l.tx, store.Query{Where: map[string][]string{"package_guids": {b.PackageGUID}}})
	if err != nil || n != 1 {
		return err
	}
	last, err := store.Builds.First(l.tx, store.Query{Where: map[string][]string{"app_guids": {b.AppGUID}, "states": {string(cf.BuildStaged)}}, Order: "created_at", Desc: true})
	if err == nil && last.Inputs == w.Inputs {
		err = l.takeIfWhole(last.DropletGUID, b, w)
	}
	if store.IsNotFound(err) || store.IsDamaged(err) {
		return nil
	}
	return err
}

// takeIfWhole lets a build take a droplet that can be started as it is and whose bits are
// whole. The build waits until they have been read.
func (l *loader) takeIfWhole(guid string, b *cf.Build, w *Work) error {
	d, err := store.Droplets.Get(l.tx, guid)
	if err != nil || d.State != cf.DropletStaged || d.Digest == "" || len(d.ProcessTypes) == 0 {
		return err
	}
	switch over, err := l.checks.want(b, l.orgOf(l.apps[b.AppGUID]), d); {
	case !over:
		w.Waits = true
	case err == nil:
		w.Reuse = guid
	}
	return nil
}

// inputs is the fingerprint of what a staging depends on; "" if a buildpack is
// downloaded, which may be another each time, or the stack's files are unknown. The build cache is left out: each staging
// makes another.
func (l *loader) inputs(in desire.StagingIn, run lrp.RunInfo) (string, error) {
	for _, b := range in.Buildpacks {
		if b.URL != "" {
			return "", nil
		}
	}
	version := l.versions(in.Stack.Name)
	if version == "" {
		return "", nil
	}
	in.Cache = ""
	run.Action = desire.Staging(in).Action
	text, err := json.Marshal(struct {
		Run   lrp.RunInfo
		Stack string
	}{run, version})
	if err != nil {
		return "", err
	}
	return l.tx.Fingerprint(text), nil
}

// noteInputs records in a build what it is staged from.
func noteInputs(tx *store.Tx, guid, inputs string) error {
	if inputs == "" {
		return nil
	}
	b, err := store.Builds.Get(tx, guid)
	if err != nil {
		return ignoreNotFound(err)
	}
	b.Inputs = inputs
	return store.Builds.Update(tx, b)
}

func ignoreNotFound(err error) error {
	if store.IsNotFound(err) {
		return nil
	}
	return err
}

// reuse ends a build with the bits of an earlier droplet. The line about it comes before
// the build is seen to be STAGED, which ends the CLI's reading of the log.
func (l *Loop) reuse(tx *store.Tx, a Action) ([]lrp.LogLine, error) {
	if ok, err := store.LRPTasks.Delete(tx, *a.Task); !ok {
		return nil, err
	}
	b, err := store.Builds.Get(tx, a.Task.GUID)
	if err != nil || b.State != cf.BuildStaging {
		return nil, ignoreNotFound(err)
	}
	earlier, err := store.Droplets.Get(tx, a.Reuse)
	if err != nil {
		return nil, ignoreNotFound(err) // the next plan stages
	}
	d := *earlier
	d.Resource, d.Metadata, d.PackageGUID, d.BuildGUID = cf.Resource{}, cf.Metadata{}, b.PackageGUID, b.GUID
	b.Inputs = a.Inputs
	line := note(b.AppGUID, "Nothing changed since droplet %s: staging is skipped", earlier.GUID)
	line.Target.Source = "STG"
	l.logs(line)
	return l.release.staged(tx, b, &d)
}
