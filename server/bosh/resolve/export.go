package resolve

import (
	"context"
	"fmt"
	"slices"

	"cupola/server/bosh/compile"
	"cupola/server/bosh/director"
	"cupola/server/bosh/release"
	"cupola/server/bosh/releases"
	"cupola/store"
	"cupola/store/cf"
)

// Export compiles the packages that jobs of a release need, and describes the tarball
// that has them.
func (res *Resolver) Export(ctx context.Context, r director.ExportRequest) (*director.Exported, error) {
	var of *cf.BOSHRelease
	if err := res.Store.Read(ctx, func(tx *store.Tx) (err error) {
		of, err = releases.Find(tx, r.Release, r.Version)
		return err
	}); err != nil {
		return nil, err
	}
	jobs, err := chosenJobs(of, r.Jobs)
	if err != nil {
		return nil, err
	}
	uploaded := &archives{Resolver: res, box: res.Sandbox(), stacks: map[string]string{}}
	name, err := uploaded.stack(ctx, r.OS)
	if err != nil {
		return nil, err
	}
	packages, st := needed(of, jobs), ""
	if at, ok := res.Roots.Stacks.Get(name); ok {
		st = at.Version()
	}
	digests, err := res.Compiler.Compile(ctx, compile.Request{Release: of, Packages: packages, OS: r.OS, Stack: name, Version: st, Deployment: r.Deployment, Step: r.Step})
	if err != nil {
		return nil, err
	}
	e := &director.Exported{Manifest: release.Manifest{Name: of.Name, Version: of.Version, CommitHash: of.CommitHash, Uncommitted: of.Uncommitted}}
	for _, j := range jobs {
		e.Manifest.Jobs = append(e.Manifest.Jobs, release.Archived{Name: j.Name, Version: j.Fingerprint, Fingerprint: j.Fingerprint, Digest: "sha256:" + j.Digest})
	}
	for _, name := range packages {
		p := of.Package(name)
		e.Manifest.Compiled = append(e.Manifest.Compiled, release.Archived{Name: p.Name, Version: p.Fingerprint, Fingerprint: p.Fingerprint, Digest: "sha256:" + digests[name],
			Dependencies: p.Dependencies, Stemcell: r.OS + "/" + r.StemcellVersion})
	}
	sums := release.NewSums()
	if err := releases.Write(&e.Manifest, res.Blobs, sums); err != nil {
		return nil, err
	}
	e.SHA1, e.SHA256 = sums.SHA1(), sums.SHA256()
	return e, nil
}

// chosenJobs returns the jobs of some names; all of them without any.
func chosenJobs(r *cf.BOSHRelease, names []string) ([]cf.BOSHReleaseJob, error) {
	if len(names) == 0 {
		return r.Jobs, nil
	}
	var all []cf.BOSHReleaseJob
	for _, name := range names {
		j := r.Job(name)
		if j == nil {
			return nil, fmt.Errorf("release '%s/%s' has no job '%s'", r.Name, r.Version, name)
		}
		all = append(all, *j)
	}
	return all, nil
}

// needed names the packages of jobs, with all that these depend on: each after those.
func needed(r *cf.BOSHRelease, jobs []cf.BOSHReleaseJob) (names []string) {
	var add func(name string)
	add = func(name string) {
		p := r.Package(name)
		if p == nil || slices.Contains(names, name) {
			return
		}
		for _, on := range p.Dependencies {
			add(on)
		}
		names = append(names, name)
	}
	for _, j := range jobs {
		for _, name := range j.Packages {
			add(name)
		}
	}
	return names
}
