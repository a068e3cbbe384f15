package stack

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"cupola/rootfs"
	"cupola/rootfs/debian"
	"cupola/rootfs/stack"
	"cupola/rootfs/system"
	"cupola/runtime/contract"
	"cupola/server/admin/steps"
	"cupola/server/cells"
	"cupola/server/control/stacks"
	"cupola/server/databroker"
	"cupola/server/datadir"
	"cupola/store"
)

// Info is a stack as operators see it.
type Info struct {
	stack.Stack
	Default bool
	Lock    string // the file that says what it is made of; "" without one
}

// BuildRequest asks for a stack made of a distribution's packages.
type BuildRequest struct {
	Suite   string `arg:"" optional:"" help:"The distribution: debian12, debian13, jammy or noble; by default that of --lock."`
	Name    string `help:"The stack's name; by default SUITE." placeholder:"NAME"`
	Variant string `help:"core runs compiled apps and shell scripts; dev adds compilers, Python, Node.js and Ruby; stemcell adds what BOSH releases are compiled with and find on stemcells." enum:"core,dev,stemcell,none" default:"core"`
	// Packages are wanted besides those of the variant.
	Packages []string `name:"package" help:"A package to add to those of the variant; may be repeated." placeholder:"NAME"`
	// With are toolchains of buildpacks, whose packages are added, too.
	With    []string     `help:"Toolchains of buildpacks to add: java, node, python, ruby, go, php, nginx, rust, r; several separated by commas." placeholder:"NAME"`
	Without []string     `flag:"-"` // packages that are left out though others depend on them: names, or patterns of path.Match
	Mirror  string       `help:"URL of the package archive; by default this machine's apt source." placeholder:"URL"`
	Lock    *debian.Lock `flag:"-"` // nil: the latest packages
	Compat  string       `help:"Value of CF_STACK in containers, for buildpacks that accept only certain stacks." placeholder:"STACK"`
	Replace bool         `flag:"-"` // the stack of that name, if there is one
}

// ImportRequest asks for a stack made of a file or directory of this machine.
type ImportRequest struct {
	Name   string `arg:"" help:"The stack's name."`
	Path   string `arg:"" help:"The file, or the directory of an OCI layout." type:"path"` // absolute
	Compat string `help:"Value of CF_STACK in containers, for buildpacks that accept only certain stacks." placeholder:"STACK"`
}

// NameRequest names a stack or an image.
type NameRequest struct {
	Name string `arg:"" help:"The stack's name, or the reference or digest of an image."`
}

// Library is the stacks and the images of a data directory.
type Library struct {
	Dir     *datadir.Dir
	Store   *store.Store
	Roots   *rootfs.Store
	Machine cells.Machine // the names that the configuration gives to stacks
	Default string        // the stack of apps that name none; "": the best there is
	Offered func()        // updates what cells offer; nil where there is no cell
	GC      *sync.Mutex   // held while unused images and blobs are removed, and while a backup collects those that it needs
	Log     *slog.Logger
}

// list lists the stacks by name.
func (l *Library) list() (all []Info) {
	for _, s := range l.Roots.Stacks.All() {
		all = append(all, l.info(s))
	}
	return all
}

// Listing is all stacks and images.
type Listing struct {
	Stacks  []Info
	Images  []ImageInfo
	Kernels []KernelChange `json:",omitempty"`
}

// Listing lists the stacks by name, and the images, the one used last first.
func (l *Library) Listing(ctx context.Context) (Listing, error) {
	images, err := l.images(ctx)
	if err != nil {
		return Listing{}, err
	}
	kernels, err := l.kernelChanges(ctx)
	return Listing{l.list(), images, kernels}, err
}

func (l *Library) info(s stack.Stack) Info {
	name, _ := l.Roots.Stacks.Default(l.Default)
	i := Info{Stack: s, Default: s.Name == name}
	lock := l.Dir.Path("rootfs", stack.Dir, s.Parts()[0], "lock.json")
	if _, err := os.Stat(lock); err == nil {
		i.Lock = lock
	}
	return i
}

// Build makes a stack of packages.
func (l *Library) Build(ctx context.Context, b BuildRequest, report steps.Func) (Info, error) {
	if b.Suite == "" && b.Lock != nil {
		b.Suite = b.Lock.Suite
	}
	toolchains, err := toolchainPackages(b.Suite, b.With)
	if err != nil {
		return Info{}, err
	}
	b.Packages = slices.Concat(b.Packages, toolchains)
	n := stack.Spec{Name: cmp.Or(b.Name, b.Suite), Compat: b.Compat, Replace: b.Replace, Origin: strings.TrimSpace(b.Suite + " " + b.Variant + " " + strings.Join(b.With, " "))}
	s, err := l.Roots.Stacks.Add(ctx, n, func(ctx context.Context, dir string) ([]byte, error) {
		r, err := debian.Build(ctx, debian.Options{Suite: b.Suite, Variant: b.Variant, Packages: b.Packages, Without: b.Without, Dest: dir, Mirror: b.Mirror, Lock: b.Lock, IDShift: l.Roots.Stacks.IDShift(), Extras: stack.DebianExtras(),
			Progress: func(p debian.Progress) {
				report(steps.Step{Step: string(p.Step), Detail: p.Detail, Done: p.Done, Total: p.Total})
			}})
		if err != nil {
			return nil, err
		}
		for _, w := range r.Warnings {
			report(steps.Step{Step: "warning", Detail: w})
		}
		report(steps.Step{Step: "save"})
		var lock bytes.Buffer
		_, err = r.Lock.WriteTo(&lock)
		return lock.Bytes(), err
	})
	if err != nil {
		return Info{}, fmt.Errorf("build the stack %s: %w", n.Name, err)
	}
	return l.made(ctx, s, report)
}

// toolchainPackages are the packages of a suite that bring toolchains of buildpacks.
func toolchainPackages(suite string, names []string) (all []string, err error) {
	var known []string
	for _, t := range contract.Toolchains() {
		if t.Packages != nil {
			known = append(known, t.Name)
		}
	}
	for _, name := range names {
		t, _ := contract.ToolchainOf(name)
		if t.Packages == nil {
			return nil, fmt.Errorf("invalid --with %q: choose of %s", name, strings.Join(known, ", "))
		}
		for _, p := range t.Packages {
			if other, ok := otherName[suite][p]; ok {
				p = other
			}
			all = append(all, p)
		}
	}
	return all, nil
}

// otherName is what a suite calls a package that has its version in its name.
var otherName = map[string]map[string]string{"jammy": {"tomcat10-common": "tomcat9-common"}}

// Import makes a stack of a file.
func (l *Library) Import(ctx context.Context, i ImportRequest, report steps.Func) (Info, error) {
	if !filepath.IsAbs(i.Path) {
		return Info{}, fmt.Errorf("import %s: the path is not absolute", i.Path)
	}
	var reportedAt time.Time
	s, err := l.Roots.Stacks.Import(ctx, i.Name, i.Compat, i.Path, func(done, total int64) {
		if time.Since(reportedAt) > steps.Interval || done == total {
			reportedAt = time.Now()
			report(steps.Step{Step: "import", Detail: filepath.Base(i.Path), Done: done, Total: total})
		}
	})
	if err != nil {
		return Info{}, err
	}
	return l.made(ctx, s, report)
}

// made offers a new stack, and warns where this machine does not suit it.
func (l *Library) made(ctx context.Context, s stack.Stack, report steps.Func) (Info, error) {
	if w := system.KernelWarning(s.Kernel); w != "" {
		report(steps.Step{Step: "warning", Detail: w})
	}
	return l.info(s), l.Offer(ctx)
}

// Offer brings the API's rows and, in a daemon, the cells up to the stacks that
// are there.
func (l *Library) Offer(ctx context.Context) error {
	if l.Offered != nil {
		l.Offered()
	}
	return l.Store.Write(ctx, func(tx *store.Tx) error { return stacks.Offer(tx, l.Rows()) })
}

// Rows are the stacks that the API offers.
func (l *Library) Rows() (out []stacks.System) {
	name, _ := l.Roots.Stacks.Default(l.Default)
	for _, s := range l.Roots.Stacks.All() {
		if slices.Contains(databroker.Stacks(), s.Name) {
			continue // not for apps
		}
		out = append(out, stacks.System{Name: s.Name, Description: s.Description, Compat: s.Compat, Default: s.Name == name})
	}
	for _, a := range l.Machine.Aliases() {
		s, _ := l.Roots.Stacks.Get(a.Of)
		out = append(out, stacks.System{Name: a.Name, Description: s.Description, Compat: s.Compat})
	}
	return out
}
