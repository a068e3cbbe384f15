// Package stacks has the commands about stacks and images, and about the built-in
// service broker, which needs a special stack.
package stacks

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"cupola/cmd/cupola/command"
	"cupola/rootfs/debian"
	"cupola/server/admin"
	"cupola/server/admin/stack"
)

// Cmd is cupola stack.
type Cmd struct {
	List    listCmd    `cmd:"" aliases:"ls"`
	Build   buildCmd   `cmd:""`
	Import  importCmd  `cmd:""`
	Pull    pullCmd    `cmd:""`
	Inspect inspectCmd `cmd:""`
	Export  exportCmd  `cmd:""`
	Migrate migrateCmd `cmd:"" help:"Move all apps of a stack to another, without downtime."`
	Gc      gcCmd      `cmd:""`
	Rm      rmCmd      `cmd:"" aliases:"remove"`
}

type listCmd struct {
	command.DaemonFlags
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the stacks.
func (c *listCmd) Run(e *command.Env) error {
	if err := c.Known(); err != nil {
		return err
	}
	all, err := admin.StackList.Do(e.Ctx, c.Target(e), admin.None{}, nil)
	if err != nil {
		return command.Interrupted(e, err)
	}
	if c.JSON {
		return command.WriteJSON(e.Out, all.Stacks)
	}
	return errors.Join(writeStacks(e.Out, all.Stacks, command.Width(e)), writeImages(e.Out, all.Images, command.Width(e)))
}

func writeStacks(w io.Writer, all []stack.Info, width int) error {
	t := command.Table{Width: width}
	t.Add("NAME", "CF_STACK", "SIZE", "MADE", "WHAT")
	for _, s := range all {
		name, size, made := s.Name, "-", "-"
		if !s.Created.IsZero() {
			size, made = command.BytesText(s.Bytes), s.Created.Local().Format("2006-01-02 15:04")
		}
		if s.Default {
			name += " (default)"
		}
		t.Add(name, s.Compat, size, made, s.Description)
	}
	return t.Write(w)
}

type buildCmd struct {
	command.DaemonFlags
	stack.BuildRequest
	LockFile string `name:"lock" help:"Build exactly the packages of this stack's lock file." type:"existingfile" placeholder:"FILE"`
}

// Run builds a stack.
func (c *buildCmd) Run(e *command.Env) (err error) {
	b := c.BuildRequest
	if c.LockFile != "" {
		if b.Lock, err = readLock(c.LockFile); err != nil {
			return err
		}
	} else if c.Suite == "" {
		return errors.New("no distribution to build: give debian12, debian13, jammy or noble, or --lock")
	}
	p := command.NewProgress(e)
	info, err := admin.StackBuild.Do(e.Ctx, c.Target(e), b, p.Step)
	return command.Interrupted(e, finish(p, c.DaemonFlags, "Built", info, err))
}

func readLock(name string) (*debian.Lock, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return debian.ReadLock(f)
}

type importCmd struct {
	command.DaemonFlags
	stack.ImportRequest
}

// Run imports a stack.
func (c *importCmd) Run(e *command.Env) error {
	if _, err := os.Stat(c.Path); err != nil {
		return err
	}
	p := command.NewProgress(e)
	info, err := admin.StackImport.Do(e.Ctx, c.Target(e), c.ImportRequest, p.Step)
	return command.Interrupted(e, finish(p, c.DaemonFlags, "Imported", info, err))
}

type rmCmd struct {
	command.DaemonFlags
	stack.NameRequest
}

// Run removes a stack or an image.
func (c *rmCmd) Run(e *command.Env) error {
	if err := c.Known(); err != nil {
		return err
	}
	r, err := admin.StackRemove.Do(e.Ctx, c.Target(e), c.NameRequest, nil)
	if err != nil {
		return command.Interrupted(e, err)
	}
	if len(r.Images) == 0 {
		fmt.Fprintf(e.Out, "Removed the stack %s.\n", c.Name)
	}
	for _, i := range r.Images {
		fmt.Fprintf(e.Out, "Removed the image %s (%s).\n", i.Reference, command.BytesText(i.DiskBytes))
	}
	return nil
}

// finish says what came of a build or import.
func finish(p *command.Progress, d command.DaemonFlags, done string, info stack.Info, err error) error {
	p.Clear()
	if err != nil {
		return err
	}
	fmt.Fprintf(p.Out, "%s the stack %s in %.1f s: %s, CF_STACK=%s\n", done, info.Name, time.Since(p.Started).Seconds(), command.BytesText(info.Bytes), info.Compat)
	if info.Lock != "" {
		fmt.Fprintf(p.Out, "  rebuild it       sudo cupola stack build --name NAME --lock %s\n", info.Lock)
	}
	fmt.Fprintf(p.Out, "  push an app      cf push -s %s\n", info.Name)
	return nil
}
