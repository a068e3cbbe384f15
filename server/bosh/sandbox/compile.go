package sandbox

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"time"

	"cupola/rootfs/layer"
	"cupola/rootfs/pack"
	"cupola/rootfs/root"
	"cupola/rootfs/tree"
	"cupola/runtime/container"
)

// Compilation is a package to be compiled.
type Compilation struct {
	Stack         string
	Name, Version string
	Source        string        // the path of its source's archive
	Dependencies  []layer.Layer // compiled packages, each at PackageDir
	Output        io.Writer     // takes what the packaging script writes
	Into          io.Writer     // takes what it installs, as a tgz
	Time          time.Duration // 0: 1 h
}

// Bounds of a compilation.
const (
	compileTime   = time.Hour
	compileMemory = 4 << 30
	compileDisk   = 16 << 30
	compileInodes = 2_000_000
	compilePids   = 4096
	compileFiles  = 65536
)

// PackageDir is where a compiled package lies in containers.
func PackageDir(name string) string { return "/var/vcap/packages/" + name }

// packaging runs the script of a package as BOSH's agent does.
const packaging = `mkdir -p "$BOSH_INSTALL_TARGET" && cd "$BOSH_COMPILE_TARGET" && exec bash -x packaging`

// Compile runs the packaging script of a package: as a container's root, without
// network, with the packages that it depends on and no others.
func (s *Sandbox) Compile(ctx context.Context, c Compilation) error {
	if c.Time == 0 {
		c.Time = compileTime
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.Time, errTime)
	defer cancel()
	request := root.Request{Stack: c.Stack, Layers: c.Dependencies, DiskBytes: compileDisk, Inodes: compileInodes}
	return s.with(ctx, request, func(m mounted) error {
		dir := "/var/vcap/data/compile/" + c.Name
		if err := s.cfg.Roots.Extract(ctx, m.id, c.Source, dir, tree.Owner{}); err != nil {
			return err
		}
		if err := s.packaging(ctx, m, c, dir); err != nil {
			return err
		}
		return s.installed(ctx, m, c)
	})
}

// packaging runs the script to its end, with all that it has started.
func (s *Sandbox) packaging(ctx context.Context, m mounted, c Compilation, dir string) error {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ours.Close()
	_, err = s.cfg.Containers.Start(ctx, container.Spec{
		ID: m.id, Rootfs: m.Path, Mounts: mounts(m.Root), Users: container.IDMap(m.users), Stdout: theirs, Stderr: theirs,
		Process: container.Process{Args: []string{"/bin/bash", "-c", packaging}, Cwd: "/", Nofile: compileFiles, Env: []string{
			"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "BOSH_COMPILE_TARGET=" + dir, "BOSH_INSTALL_TARGET=" + PackageDir(c.Name),
			"BOSH_PACKAGE_NAME=" + c.Name, "BOSH_PACKAGE_VERSION=" + c.Version,
		}},
		Limits: container.Limits{MemoryBytes: compileMemory, CPUShares: cpuShares, Pids: compilePids},
	})
	theirs.Close()
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = s.cfg.Containers.Signal(m.id, syscall.SIGKILL) })()
	if _, err := io.Copy(c.Output, ours); err != nil {
		return errors.Join(err, s.cfg.Containers.Signal(m.id, syscall.SIGKILL))
	}
	exit, err := s.cfg.Containers.Wait(ctx, m.id)
	switch {
	case errors.Is(context.Cause(ctx), errTime):
		return ended("the packaging script did not end within %s", c.Time)
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case exit.OOM:
		return ended("the packaging script needed more than %d MB of memory", compileMemory>>20)
	case exit.Code != 0:
		return ended("the packaging script ended with status %d", exit.Code)
	}
	return nil
}

// installed writes what the script has installed. All its processes have ended.
func (s *Sandbox) installed(ctx context.Context, m mounted, c Compilation) error {
	dir, err := os.OpenRoot(m.Path)
	if err != nil {
		return err
	}
	defer dir.Close()
	target := PackageDir(c.Name)[1:]
	for at := target; at != "."; at = path.Dir(at) { // a link would lead to the machine's own files
		info, err := dir.Lstat(at)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return ended("the packaging script has made /%s something else than a directory", at)
		}
	}
	z := gzip.NewWriter(c.Into)
	owner := func(uint32) uint32 { return 0 }
	if err := pack.Tree(ctx, filepath.Join(m.Path, target), pack.Options{Owner: owner, Layer: true, Root: true}, z); err != nil {
		return fmt.Errorf("pack what was installed: %w", err)
	}
	return z.Close()
}

// compilers are where a stack has what nearly all packaging scripts need.
var compilers = []string{"usr/bin/cc", "usr/bin/gcc"}

// Compiles reports whether a stack has a C compiler and bash.
func (s *Sandbox) Compiles(ctx context.Context, stack string) (does bool, err error) {
	err = s.with(ctx, rubyRoot(stack), func(m mounted) error {
		cc, err := locate(m.Root, compilers)
		if err != nil || cc == "" {
			return err
		}
		bash, err := locate(m.Root, []string{"usr/bin/bash", "bin/bash"})
		does = bash != ""
		return err
	})
	return does, err
}
