package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"cupola/rootfs/debian"
	"cupola/server/admin"
	"cupola/server/admin/stack"
)

type stackCmd struct {
	List    stackListCmd    `cmd:"" aliases:"ls" help:"${help_stack_list}"`
	Build   stackBuildCmd   `cmd:"" help:"${help_stack_build}"`
	Import  stackImportCmd  `cmd:"" help:"${help_stack_import}"`
	Pull    stackPullCmd    `cmd:"" help:"${help_stack_pull}"`
	Inspect stackInspectCmd `cmd:"" help:"${help_stack_inspect}"`
	Export  stackExportCmd  `cmd:"" help:"${help_stack_export}"`
	Migrate stackMigrateCmd `cmd:"" help:"Move all apps of a stack to another, without downtime."`
	Gc      stackGCCmd      `cmd:"" help:"${help_stack_gc}"`
	Rm      stackRmCmd      `cmd:"" aliases:"remove" help:"${help_stack_rm}"`
}

// known checks that the data directory is there: looking makes none.
func (d daemonFlags) known() error {
	if _, err := os.Stat(d.DataDir); err != nil {
		return fmt.Errorf("no data directory %s: give --data-dir, or start 'cupola serve' first", d.DataDir)
	}
	return nil
}

type stackListCmd struct {
	daemonFlags
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the stacks.
func (c *stackListCmd) Run(e *env) error {
	if err := c.known(); err != nil {
		return err
	}
	all, err := admin.StackList.Do(e.ctx, c.target(e), admin.None{}, nil)
	if err != nil {
		return interrupted(e, err)
	}
	if c.JSON {
		return writeJSON(e.out, all.Stacks)
	}
	return errors.Join(writeStacks(e.out, all.Stacks, width(e)), writeImages(e.out, all.Images, width(e)))
}

func writeStacks(w io.Writer, all []stack.Info, width int) error {
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
	stack.BuildRequest
	LockFile string `name:"lock" help:"Build exactly the packages of this stack's lock file." type:"existingfile" placeholder:"FILE"`
}

// Run builds a stack.
func (c *stackBuildCmd) Run(e *env) (err error) {
	b := c.BuildRequest
	if c.LockFile != "" {
		if b.Lock, err = readLock(c.LockFile); err != nil {
			return err
		}
	} else if c.Suite == "" {
		return errors.New("no distribution to build: give debian12, debian13, jammy or noble, or --lock")
	}
	p := newStackProgress(e)
	info, err := admin.StackBuild.Do(e.ctx, c.target(e), b, p.step)
	return interrupted(e, p.end(c.daemonFlags, "Built", info, err))
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
	stack.ImportRequest
}

// Run imports a stack.
func (c *stackImportCmd) Run(e *env) error {
	if _, err := os.Stat(c.Path); err != nil {
		return err
	}
	p := newStackProgress(e)
	info, err := admin.StackImport.Do(e.ctx, c.target(e), c.ImportRequest, p.step)
	return interrupted(e, p.end(c.daemonFlags, "Imported", info, err))
}

type stackRmCmd struct {
	daemonFlags
	stack.NameRequest
}

// Run removes a stack or an image.
func (c *stackRmCmd) Run(e *env) error {
	if err := c.known(); err != nil {
		return err
	}
	r, err := admin.StackRemove.Do(e.ctx, c.target(e), c.NameRequest, nil)
	if err != nil {
		return interrupted(e, err)
	}
	if len(r.Images) == 0 {
		fmt.Fprintf(e.out, "Removed the stack %s.\n", c.Name)
	}
	for _, i := range r.Images {
		fmt.Fprintf(e.out, "Removed the image %s (%s).\n", i.Reference, bytesText(i.DiskBytes))
	}
	return nil
}

// end says what came of a build or import.
func (p *stackProgress) end(d daemonFlags, done string, info stack.Info, err error) error {
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
