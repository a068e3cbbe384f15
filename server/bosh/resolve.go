package bosh

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"cupola/server/bosh/erb"
	"cupola/server/bosh/link"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/redact"
	"cupola/server/bosh/release"
	"cupola/server/bosh/tree"
)

// Resolver makes Deployments.
type Resolver struct {
	// Job reads a job from a release image. It is asked once for each.
	Job func(ctx context.Context, image manifest.Image, job string) (release.Job, error)
	// Patched is Job after scripts have changed a copy of the image. Nil has none
	// run.
	Patched func(ctx context.Context, image manifest.Image, job string, by Patch) (release.Job, error)
	// Pinned names an image, of which a job was read, by its digest. Nil leaves
	// images as the manifest names them.
	Pinned func(manifest.Image) string
	// Ruby is nil where there is none; then templates have to be simple.
	Ruby erb.Ruby
	// Shared are the links of other deployments; nil: there are none.
	Shared func(deployment string) (providers []link.Provider, exists bool)
	// IP is the address of an instance; nil has templates see bpm.AddressMark.
	IP func(group string, index int) string
}

// Resolve makes a Deployment of a manifest that lint has passed, and in which
// variables have their values. The error has a line for all that is wrong in the
// first stage in which something is: releases, links and properties, templates,
// processes.
func (r Resolver) Resolve(ctx context.Context, m *manifest.Manifest) (*Deployment, error) {
	s := &resolution{Resolver: r, m: m.WithAddons(), aliases: m.Aliases()}
	for _, stage := range []func(context.Context) error{s.read, s.link, s.render, s.finish} {
		if err := stage(ctx); err != nil {
			return nil, err
		}
	}
	return s.deployment(), nil
}

// resolution is a Resolve under way.
type resolution struct {
	Resolver
	m       *manifest.Manifest
	aliases []manifest.Alias
	groups  []*group
	links   link.Links
	foreign []string // texts in links of other deployments
	literal []string // credentials in properties
}

type group struct {
	*manifest.InstanceGroup
	jobs []*job
}

type job struct {
	*manifest.Job
	image      manifest.Image
	version    string
	release    release.Job
	properties map[string]any
	order      *tree.Order // of properties
	rendered   []Rendered  // by instance
	monit      bool        // its processes are those of its monit file
	conditions bool        // those of its monit file are looked at
	ignored    []string    // lines of its monit file
}

func (g *group) fault(j *job, err error) error {
	return fmt.Errorf("instance group %q, job %q: %w", g.Name, j.Name, err)
}

// each joins the errors of f for all jobs.
func (r *resolution) each(f func(*group, *job) error) error {
	var faults []error
	for _, g := range r.groups {
		for _, j := range g.jobs {
			if err := f(g, j); err != nil {
				faults = append(faults, g.fault(j, err))
			}
		}
	}
	return errors.Join(faults...)
}

// read reads the jobs from their images.
func (r *resolution) read(ctx context.Context) error {
	for _, g := range r.m.InstanceGroups {
		resolved := &group{InstanceGroup: g}
		for _, j := range g.Jobs {
			resolved.jobs = append(resolved.jobs, &job{Job: j})
		}
		r.groups = append(r.groups, resolved)
	}
	type known struct {
		image manifest.Image
		job   string
	}
	seen := map[known]release.Job{}
	return r.each(func(g *group, j *job) (err error) {
		if j.image, err = r.m.Image(g.InstanceGroup, j.Job); err != nil {
			return err
		}
		j.version = r.m.Release(j.Release).Version
		if p := patchOf(j.Job); len(p.Scripts) > 0 {
			j.release, err = r.patched(ctx, j, p)
			j.useMonit(g.InstanceGroup)
			return err
		}
		read, ok := seen[known{j.image, j.Name}]
		if !ok {
			if read, err = r.Job(ctx, j.image, j.Name); err != nil {
				return err
			}
			seen[known{j.image, j.Name}] = read
		}
		j.release = read
		j.useMonit(g.InstanceGroup)
		return nil
	})
}

// link finds properties and links.
func (r *resolution) link(context.Context) error {
	in := link.Deployment{Name: r.m.Name, Shared: r.shared}
	for _, g := range r.groups {
		of := link.Group{Name: g.Name, Address: r.m.Names().Group(g.Name)}
		for _, n := range g.Networks {
			of.Networks = append(of.Networks, n.Name)
		}
		for _, i := range g.All() {
			of.Instances = append(of.Instances, link.Instance{Address: r.m.Names().Service(g.Name, i.Index), AZ: i.AZ, Index: i.Index, Bootstrap: i.Index == 0})
		}
		for _, j := range g.jobs {
			of.Jobs = append(of.Jobs, link.Job{Job: j.Job, Release: j.release})
		}
		in.Groups = append(in.Groups, of)
	}
	var fault error
	r.links, fault = link.Resolve(in)
	return errors.Join(fault, r.each(func(_ *group, j *job) (err error) {
		j.properties, err = visible(j.release, j.Properties)
		j.order = orderOf(j.release, j.Job)
		r.literal = append(r.literal, redact.Texts(j.properties)...)
		return err
	}))
}

// shared is Shared; it notes the texts in the properties.
func (r *resolution) shared(deployment string) ([]link.Provider, bool) {
	if r.Shared == nil {
		return nil, false
	}
	all, exists := r.Shared(deployment)
	for _, p := range all {
		if p.Shared {
			r.foreign = append(r.foreign, texts(map[string]any(p.Link.Properties))...)
		}
	}
	return all, exists
}

// texts are all strings in a value, except the keys of its maps.
func texts(v any) (all []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, item := range v {
			all = append(all, texts(item)...)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, texts(v[key])...)
		}
	}
	return all
}

// render renders all templates of all instances at once.
func (r *resolution) render(ctx context.Context) error {
	var all []erb.Template
	_ = r.each(func(g *group, j *job) error {
		for _, i := range g.All() {
			sees := r.context(g, j, i)
			for _, t := range j.release.Templates {
				all = append(all, erb.Template{Group: g.Name, Job: j.Name, Index: i.Index, Source: t.Source, Destination: t.Destination, Text: t.Content, Context: sees})
			}
		}
		return nil
	})
	out, err := erb.Render(ctx, all, r.Ruby)
	if err != nil {
		return err
	}
	return r.each(func(g *group, j *job) error {
		j.rendered = make([]Rendered, g.Instances)
		for i := range j.rendered {
			for _, t := range j.release.Templates {
				j.rendered[i].Files = append(j.rendered[i].Files, JobFile{t.Destination, t.Mode, out[0]})
				out = out[1:]
			}
		}
		return nil
	})
}

// finish takes the processes from what was rendered.
func (r *resolution) finish(context.Context) error {
	faults := []error{r.each((*group).readProcesses)}
	for _, g := range r.groups {
		faults = append(faults, g.checkContainers())
	}
	return errors.Join(faults...)
}

func (r *resolution) deployment() *Deployment {
	d := &Deployment{Name: r.m.Name, Tags: r.m.Tags, Provides: r.links.Providers, Consumes: r.links.Foreign, Aliases: r.aliases, Foreign: r.foreign, Literal: r.literal}
	for _, g := range r.groups {
		d.Groups = append(d.Groups, r.group(g))
		for _, j := range g.jobs {
			for _, line := range j.ignored {
				d.Ignored = append(d.Ignored, fmt.Sprintf("%s/%s, %s", g.Name, j.Name, redact.Text(line, r.literal)))
			}
		}
	}
	return d
}

func (r *resolution) group(g *group) Group {
	of := Group{
		Name: g.Name, Lifecycle: g.Lifecycle, AZs: g.AZs, Address: r.m.Names().Group(g.Name), Update: r.m.UpdateOf(g.InstanceGroup),
		PersistentDiskMB: g.PersistentDiskMB, PersistentDiskType: g.PersistentDiskType, Tmpfs: r.m.Features.UseTmpfsConfig || g.Env.BOSH.JobDirTmpfs,
		MigratedFrom: g.MigratedFrom, RequiredService: g.RequiredService, Settings: g.Env.BOSH.Settings,
	}
	if g.VMResources != nil {
		of.EphemeralDiskMB = g.VMResources.EphemeralDiskMB
	}
	for _, j := range g.jobs {
		of.Jobs = append(of.Jobs, r.job(j))
	}
	for n, i := range g.All() {
		one := Instance{Instance: i, Address: r.m.Names().Service(g.Name, i.Index)}
		for _, j := range g.jobs {
			one.Jobs = append(one.Jobs, j.rendered[n])
		}
		of.Instances = append(of.Instances, one)
	}
	of.sign()
	return of
}

func (r *resolution) job(j *job) Job {
	of := Job{Name: j.Name, Release: j.Release, Version: j.version, Image: j.image, Addon: j.Addon, Scripts: j.scripts()}
	if len(j.rendered) > 0 {
		of.Processes = j.rendered[0].Processes
		of.Varies = slices.ContainsFunc(j.rendered, func(i Rendered) bool { return digest(i.Processes) != digest(of.Processes) })
	}
	if r.Pinned != nil {
		of.Pinned = r.Pinned(j.image)
	}
	if q := j.Quarks; q != nil {
		of.Scaling, of.PostStart, of.Security = q.Run.Scaling, q.PostStart, q.Run.SecurityContext
		of.Ports, of.ActivePassive, of.Envs = ports(q), probes(q.ActivePassive), special(q.Envs)
	}
	return of
}
