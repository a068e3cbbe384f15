package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"cupola/rootfs/debian"
	"cupola/server"
)

type stackCmd struct {
	List    stackListCmd    `cmd:"" aliases:"ls" help:"List the stacks and the images."`
	Build   stackBuildCmd   `cmd:"" help:"Build a stack from a distribution's signed packages."`
	Import  stackImportCmd  `cmd:"" help:"Import a root filesystem's tar, an OCI image layout or the output of 'docker save'."`
	Pull    stackPullCmd    `cmd:"" help:"Pull an image from a registry, for apps that name it or as a stack."`
	Inspect stackInspectCmd `cmd:"" help:"Show a stack or an image, and what uses it."`
	Export  stackExportCmd  `cmd:"" help:"Export a pulled image as an OCI image layout."`
	Migrate stackMigrateCmd `cmd:"" help:"Move all apps of a stack to another, without downtime."`
	Gc      stackGCCmd      `cmd:"" help:"Remove unused images."`
	Rm      stackRmCmd      `cmd:"" aliases:"remove" help:"Remove an unused stack or image."`
}

// withStacks runs do with the stacks of a data directory, whether its daemon
// runs or not.
func (d daemonFlags) withStacks(e *env, do func(server.Stacks) error) error {
	return withStacksOf(e, server.Config{DataDir: d.DataDir, Log: e.log}, do)
}

func withStacksOf(e *env, c server.Config, do func(server.Stacks) error) error {
	s, err := server.OpenStacks(e.ctx, c)
	if err != nil {
		return err
	}
	err = errors.Join(do(s), s.Close())
	if e.ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}

// withKnownStacks is withStacks where a data directory is: looking makes none.
func (d daemonFlags) withKnownStacks(e *env, do func(server.Stacks) error) error {
	if _, err := os.Stat(d.DataDir); err != nil {
		return fmt.Errorf("no data directory %s: give --data-dir, or start 'cupola serve' first", d.DataDir)
	}
	return d.withStacks(e, do)
}

type stackListCmd struct {
	daemonFlags
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the stacks.
func (c *stackListCmd) Run(e *env) error {
	return c.withKnownStacks(e, func(s server.Stacks) error {
		all, err := s.List(e.ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return writeJSON(e.out, all)
		}
		images, err := s.Images(e.ctx)
		if err != nil {
			return err
		}
		return errors.Join(writeStacks(e.out, all, width(e)), writeImages(e.out, images, width(e)))
	})
}

func writeStacks(w io.Writer, all []server.StackInfo, width int) error {
	t := table{width: width}
	t.add("NAME", "CF_STACK", "SIZE", "MADE", "WHAT")
	for _, s := range all {
		name, size, made := s.Name, "-", "-"
		if !s.Created.IsZero() {
			size, made = bytesText(s.Bytes), s.Created.Local().Format("2006-01-02 15:04")
		}
		if s.Default {
			name += " (default)"
		}
		t.add(name, s.Compat, size, made, s.Description)
	}
	return t.write(w)
}

type stackBuildCmd struct {
	daemonFlags
	Suite   string   `arg:"" optional:"" help:"The distribution: debian12, debian13, jammy or noble; by default that of --lock."`
	Name    string   `help:"The stack's name; by default SUITE." placeholder:"NAME"`
	Variant string   `help:"core runs compiled apps and shell scripts; dev adds compilers, Python, Node.js and Ruby." enum:"core,dev,none" default:"core"`
	Package []string `help:"A package to add to those of the variant; may be repeated." placeholder:"NAME"`
	Mirror  string   `help:"URL of the package archive; by default this machine's apt source." placeholder:"URL"`
	Lock    string   `help:"Build exactly the packages of this stack's lock file." type:"existingfile" placeholder:"FILE"`
	Compat  string   `help:"Value of CF_STACK in containers, for buildpacks that accept only certain stacks." placeholder:"STACK"`
}

// Run builds a stack.
func (c *stackBuildCmd) Run(e *env) error {
	b := server.StackBuild{Suite: c.Suite, Variant: c.Variant, Packages: c.Package, Name: c.Name, Compat: c.Compat, Mirror: c.Mirror}
	if c.Lock != "" {
		lock, err := readLock(c.Lock)
		if err != nil {
			return err
		}
		b.Lock = lock
	} else if c.Suite == "" {
		return errors.New("no distribution to build: give debian12, debian13, jammy or noble, or --lock")
	}
	return c.withStacks(e, func(s server.Stacks) error {
		p := newStackProgress(e)
		info, err := s.Build(e.ctx, b, p.step)
		return p.end(c.daemonFlags, "Built", info, err)
	})
}

func readLock(name string) (*debian.Lock, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return debian.ReadLock(f)
}

type stackImportCmd struct {
	daemonFlags
	Name   string `arg:"" help:"The stack's name."`
	Path   string `arg:"" help:"The file, or the directory of an OCI layout." type:"path"`
	Compat string `help:"Value of CF_STACK in containers, for buildpacks that accept only certain stacks." placeholder:"STACK"`
}

// Run imports a stack.
func (c *stackImportCmd) Run(e *env) error {
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return err
	}
	return c.withStacks(e, func(s server.Stacks) error {
		p := newStackProgress(e)
		info, err := s.Import(e.ctx, server.StackImport{Name: c.Name, Compat: c.Compat, Path: path}, p.step)
		return p.end(c.daemonFlags, "Imported", info, err)
	})
}

type stackRmCmd struct {
	daemonFlags
	Name string `arg:"" help:"The stack's name, or the reference or digest of an image."`
}

// Run removes a stack or an image.
func (c *stackRmCmd) Run(e *env) error {
	return c.withKnownStacks(e, func(s server.Stacks) error {
		r, err := s.Remove(e.ctx, c.Name)
		if err != nil {
			return err
		}
		if len(r.Images) == 0 {
			fmt.Fprintf(e.out, "Removed the stack %s.\n", c.Name)
		}
		for _, i := range r.Images {
			fmt.Fprintf(e.out, "Removed the image %s (%s).\n", i.Reference, bytesText(i.DiskBytes))
		}
		return nil
	})
}

// end says what came of a build or import.
func (p *stackProgress) end(d daemonFlags, done string, info server.StackInfo, err error) error {
	p.clear()
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%s the stack %s in %.1f s: %s, CF_STACK=%s\n", done, info.Name, time.Since(p.started).Seconds(), bytesText(info.Bytes), info.Compat)
	if info.Lock != "" {
		fmt.Fprintf(p.out, "  rebuild it       sudo cupola stack build --name NAME --lock %s\n", info.Lock)
	}
	fmt.Fprintf(p.out, "  push an app      cf push -s %s\n", info.Name)
	return nil
}
