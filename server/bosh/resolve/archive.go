package resolve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cupola/rootfs/layer"
	"cupola/rootfs/reference"
	"cupola/rootfs/stack"
	"cupola/runtime/fault"
	"cupola/server/bosh"
	"cupola/server/bosh/compile"
	"cupola/server/bosh/director"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/releases"
	"cupola/server/bosh/sandbox"
	"cupola/server/bosh/tarball"
	"cupola/store"
	"cupola/store/cf"
)

// archives are the uploaded releases of a manifest.
type archives struct {
	*Resolver
	box     *sandbox.Sandbox
	request director.Request
	found   map[manifest.Archive]*found
	stacks  map[string]string // by the OS of the stemcell

	mu sync.Mutex // of what compile collects
}

// found is a release that is here.
type found struct {
	*cf.BOSHRelease
	stack string // its name
}

// jobs returns the stack of a release, and its jobs as layers. The release is
// downloaded if it is not here.
func (a *archives) jobs(ctx context.Context, of manifest.Archive) (pinned string, jobs []layer.Layer, err error) {
	r, err := a.find(ctx, of)
	if err != nil {
		return "", nil, err
	}
	name, err := a.stack(ctx, of.OS)
	if err != nil {
		return "", nil, err
	}
	a.found[of] = &found{r, name}
	for _, j := range r.Jobs {
		path, err := a.Blobs.Path(j.Digest)
		if err != nil {
			return "", nil, fmt.Errorf("job '%s' of release '%s/%s': %w; upload the release again with --fix", j.Name, r.Name, r.Version, err)
		}
		jobs = append(jobs, layer.Layer{Digest: j.Digest, Archive: path, Dest: "/var/vcap/jobs-src/" + j.Name})
	}
	return string(reference.SchemePreloaded) + ":" + name, jobs, nil
}

// find is a release that was uploaded, or is downloaded now.
func (a *archives) find(ctx context.Context, of manifest.Archive) (r *cf.BOSHRelease, err error) {
	err = a.Store.Read(ctx, func(tx *store.Tx) (err error) {
		r, err = releases.Find(tx, of.Name, of.Version)
		return err
	})
	missing, _ := errors.AsType[*cf.Error](err)
	switch {
	case missing != nil && of.URL == "":
		return nil, fmt.Errorf("%s; upload it with 'cupola deployment upload-release', or give the release a url", missing.Detail)
	case missing == nil:
		return r, err
	}
	a.request.Say("Downloading release", of.Name+"/"+of.Version)
	if r, err = a.Fetch(ctx, of.URL, tarball.Want{Digest: of.Digest, Name: of.Name, Version: of.Version}); err != nil {
		return nil, fmt.Errorf("release '%s/%s': %w", of.Name, of.Version, err)
	}
	err = a.Store.Write(ctx, func(tx *store.Tx) (err error) {
		r, _, err = releases.Keep(tx, r, false)
		return err
	})
	return r, err
}

// stack chooses the stack for the stemcells of an OS: the operator's, the one of its
// name, or the first that can compile.
func (a *archives) stack(ctx context.Context, os string) (string, error) {
	if name := a.stacks[os]; name != "" {
		return name, nil
	}
	name, err := a.chooseStack(ctx, os)
	if err == nil {
		a.stacks[os] = name
	}
	return name, err
}

func (a *archives) chooseStack(ctx context.Context, os string) (string, error) {
	if name := a.StackFor[os]; name != "" {
		if _, ok := a.Roots.Stacks.Get(name); !ok {
			return "", fmt.Errorf("stemcell %s: the stack %q of --stemcell-stack is not here; see 'cupola stack'", os, name)
		}
		return name, nil
	}
	if _, ok := a.Roots.Stacks.Get(os); ok {
		return os, nil
	}
	all := a.Roots.Stacks.All()
	slices.SortStableFunc(all, func(x, y stack.Stack) int { return rank(x) - rank(y) })
	for _, st := range all {
		does, err := a.box.Compiles(ctx, st.Name)
		if err != nil {
			return "", err
		}
		if does {
			return st.Name, nil
		}
	}
	return "", fmt.Errorf("stemcell %s: no stack has bash and a C compiler: build one with 'cupola stack build debian12 --variant stemcell', or name one with --stemcell-stack %s=STACK", os, os)
}

// rank orders stacks by how well they suit: those that were made for a purpose
// before this machine's own files.
func rank(st stack.Stack) int {
	switch st.Kind {
	case stack.KindDir, stack.KindImage:
		return 0
	case stack.KindHost:
		return 1
	}
	return 2
}

// compile compiles the packages of all jobs of uploaded releases, and shows to each
// job its own ones and those of the other jobs of its group.
func (a *archives) compile(ctx context.Context, d *bosh.Deployment) error {
	if len(a.found) == 0 {
		return nil
	}
	digests := map[manifest.Archive]map[string]string{}
	a.request.Say("", "") // what follows is reported step by step
	group, inner := fault.NewGroup(ctx)
	for of, r := range a.found {
		group.Go(fault.ErrFunc("compile", func() error {
			st, _ := a.Roots.Stacks.Get(r.stack)
			made, err := a.Compiler.Compile(inner, compile.Request{Release: r.BOSHRelease, Packages: packagesOf(d, of, r), OS: of.OS, Stack: r.stack, Version: st.Version(),
				Deployment: d.Name, Step: a.request.Step})
			a.mu.Lock()
			defer a.mu.Unlock()
			digests[of] = made
			return err
		}))
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for n := range d.Groups {
		a.show(&d.Groups[n], digests)
	}
	return nil
}

// packagesOf names the packages of a release that jobs of a deployment need.
func packagesOf(d *bosh.Deployment, of manifest.Archive, r *found) (names []string) {
	for _, g := range d.Groups {
		for _, j := range g.Jobs {
			if job := r.Job(j.Name); j.Image.Archive == of && job != nil {
				names = append(names, job.Packages...)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// show gives the jobs of a group their packages.
func (a *archives) show(g *bosh.Group, digests map[manifest.Archive]map[string]string) {
	var all []bosh.Package
	for n := range g.Jobs {
		j := &g.Jobs[n]
		r := a.found[j.Image.Archive]
		if r == nil {
			continue
		}
		j.Version = r.Version
		for _, name := range r.Job(j.Name).Packages {
			j.Packages = append(j.Packages, bosh.Package{Name: name, Digest: digests[j.Image.Archive][name]})
		}
		all = append(all, j.Packages...)
	}
	for n := range g.Jobs {
		if j := &g.Jobs[n]; a.found[j.Image.Archive] != nil {
			j.Packages = together(j.Packages, all)
		}
	}
}

// together adds packages of others whose names are free.
func together(own, others []bosh.Package) []bosh.Package {
	all := slices.Clone(own)
	for _, p := range others {
		if !slices.ContainsFunc(all, func(have bosh.Package) bool { return have.Name == p.Name }) {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(x, y bosh.Package) int { return strings.Compare(x.Name, y.Name) })
	return all
}
