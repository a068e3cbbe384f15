package stack

import (
	"context"
	"slices"

	"cupola/rootfs/debian"
	"cupola/server/admin/steps"
	"cupola/server/databroker"
)

// PrepareRequest asks for the stack that services of the built-in broker run on.
type PrepareRequest struct {
	Services []string     `help:"Services to prepare, separated by commas; those that the stack has stay. Default: all that the distribution has packages of." placeholder:"NAME"`
	Suite    string       `help:"The distribution to build it from: debian12, debian13, jammy or noble." default:"debian12"`
	Mirror   string       `help:"URL of the package archive; by default this machine's apt source." placeholder:"URL"`
	Lock     *debian.Lock `flag:"-"` // nil: the latest packages
}

// Prepared is what became of it.
type Prepared struct {
	Info
	Services []string // that the stack has programs of
}

// Prepare builds the services' stack. Services that it has already stay in it; instances that
// run get its files when they start again.
func (l *Library) Prepare(ctx context.Context, p PrepareRequest, report steps.Func) (Prepared, error) {
	if p.Lock != nil {
		p.Suite = p.Lock.Suite
	}
	names := p.Services
	if len(names) > 0 {
		for _, has := range databroker.Prepared(l.HasServiceFile) {
			if !slices.Contains(names, has) {
				names = append(names, has)
			}
		}
	}
	packages, without, err := databroker.Packages(p.Suite, names)
	if err != nil {
		return Prepared{}, err
	}
	info, err := l.Build(ctx, BuildRequest{Suite: p.Suite, Variant: "none", Packages: packages, Without: without, Name: databroker.Stack, Mirror: p.Mirror, Lock: p.Lock, Replace: true}, report)
	return Prepared{info, databroker.Prepared(l.HasServiceFile)}, err
}

// HasServiceFile reports whether the services' stack is here and has a file that matches a
// pattern of path.Match.
func (l *Library) HasServiceFile(pattern string) bool {
	s, ok := l.Roots.Stacks.Get(databroker.Stack)
	return ok && s.HasFile(pattern)
}
