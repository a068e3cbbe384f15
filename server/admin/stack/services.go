package stack

import (
	"context"
	"fmt"
	"slices"

	"cupola/rootfs/debian"
	"cupola/server/admin/steps"
	"cupola/server/databroker"
)

// PrepareRequest asks for the stacks that services of the built-in broker run on.
type PrepareRequest struct {
	Services []string     `help:"Services to prepare, separated by commas; those that are prepared stay. Default: all that the distribution has packages of. The images of s3 and memcached are pulled only if they are named." placeholder:"NAME"`
	Suite    string       `help:"The distribution to build it from: debian12, debian13, jammy or noble." default:"debian12"`
	Mirror   string       `help:"URL of the package archive; by default this machine's apt source." placeholder:"URL"`
	Lock     *debian.Lock `flag:"-"` // nil: the latest packages
}

// Prepared is what became of it.
type Prepared struct {
	Stacks   []Info   // that were made
	Services []string // that are prepared now
}

// Prepare builds the services' stack, and pulls the images of services that have a stack for themselves. Services that the
// stack has already stay in it; instances that run get the files of a stack when they start again.
func (l *Library) Prepare(ctx context.Context, p PrepareRequest, report steps.Func) (out Prepared, err error) {
	images, packaged := databroker.Images(p.Services)
	if len(packaged) > 0 || len(images) == 0 || p.Lock != nil {
		info, err := l.buildServices(ctx, p, packaged, report)
		if err != nil {
			return out, err
		}
		out.Stacks = append(out.Stacks, info)
	}
	for _, i := range images {
		info, err := l.Pull(ctx, PullRequest{Reference: i.Reference, Name: i.Stack}, report)
		if err != nil {
			return out, fmt.Errorf("%s: %w: name a mirror with --mirrors, or make the stack of another image with 'sudo cupola stack pull IMAGE --name %s'", i.Service, err, i.Stack)
		}
		out.Stacks = append(out.Stacks, info)
	}
	out.Services = databroker.Prepared(l.HasServiceFile)
	return out, nil
}

// buildServices builds the stack of the services that have packages: of those with these names and those that it has; no names are all.
func (l *Library) buildServices(ctx context.Context, p PrepareRequest, names []string, report steps.Func) (Info, error) {
	if p.Lock != nil {
		p.Suite = p.Lock.Suite
	}
	if len(names) > 0 {
		_, has := databroker.Images(databroker.Prepared(l.HasServiceFile))
		for _, name := range has {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	packages, without, err := databroker.Packages(p.Suite, names)
	if err != nil {
		return Info{}, err
	}
	return l.Build(ctx, BuildRequest{Suite: p.Suite, Variant: "none", Packages: packages, Without: without, Name: databroker.Stack, Mirror: p.Mirror, Lock: p.Lock, Replace: true}, report)
}

// HasServiceFile reports whether a stack is here and has a file that matches a pattern of path.Match.
func (l *Library) HasServiceFile(name, pattern string) bool {
	s, ok := l.Roots.Stacks.Get(name)
	return ok && s.HasFile(pattern)
}
