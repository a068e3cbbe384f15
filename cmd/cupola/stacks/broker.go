package stacks

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"cupola/cmd/cupola/command"
	"cupola/server/admin"
	"cupola/server/admin/stack"
	"cupola/server/databroker"
	"cupola/server/databroker/servicefile"
	"cupola/server/datadir"
	"cupola/server/images"
)

// BrokerCmd is cupola broker.
type BrokerCmd struct {
	Prepare brokerPrepareCmd `cmd:"" `
	Status  brokerStatusCmd  `cmd:""`
	Check   brokerCheckCmd   `cmd:"" help:"Check files of your own services, which 'serve --data-services' takes."`
}

type brokerPrepareCmd struct {
	command.DaemonFlags
	images.Registries
	stack.PrepareRequest
	Lock string `help:"Build exactly the packages of this stack's lock file." type:"existingfile" placeholder:"FILE"`
}

// Run makes the stacks. Where a daemon runs, its flags for registries count.
func (c *brokerPrepareCmd) Run(e *command.Env) (err error) {
	if c.Lock != "" {
		if c.PrepareRequest.Lock, err = readLock(c.Lock); err != nil {
			return err
		}
	}
	target := c.Target(e)
	if target.Registries, err = c.Registries.Open(); err != nil {
		return err
	}
	p := command.NewProgress(e)
	made, err := admin.BrokerPrepare.Do(e.Ctx, target, c.PrepareRequest, p.Step)
	p.Clear()
	if err != nil {
		return command.Interrupted(e, err)
	}
	for _, s := range made.Stacks {
		fmt.Fprintf(e.Out, "Made the stack %s: %s\n", s.Name, command.BytesText(s.Bytes))
		if s.Lock != "" {
			fmt.Fprintf(e.Out, "  rebuild it with   sudo cupola broker prepare --lock %s%s\n", s.Lock, datadir.Flag(c.DataDir))
		}
	}
	fmt.Fprintf(e.Out, "Prepared: %s\n", strings.Join(made.Services, ", "))
	return nil
}

type brokerCheckCmd struct {
	Files []string `arg:"" help:"Files, or directories of them." placeholder:"FILE"`
}

// Run checks the files.
func (c *brokerCheckCmd) Run(e *command.Env) error {
	var faults []error
	for _, path := range c.Files {
		files, err := servicefile.Find(path)
		faults = append(faults, err)
		for _, file := range files {
			f, err := databroker.CheckFile(file)
			if err != nil {
				faults = append(faults, err)
				continue
			}
			var plans []string
			for _, p := range f.Plans {
				plans = append(plans, p.Name)
			}
			fmt.Fprintf(e.Out, "%s: OK, %s %s, with the plans %s\n", file, f.Name, f.Version, strings.Join(plans, ", "))
		}
	}
	return errors.Join(faults...)
}

// writeFiles lists the services of the operator's files, and what is wrong with those that are not offered.
func writeFiles(t io.Writer, files []databroker.FileStatus) {
	if len(files) == 0 {
		return
	}
	fmt.Fprintln(t, "\nFILE\tSERVICE\tVERSION")
	for _, f := range files {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.File, cmp.Or(f.Service, "not offered"), f.Version)
	}
	for _, f := range files {
		if f.Fault != "" {
			fmt.Fprintln(t, f.Fault)
		}
	}
}

type brokerStatusCmd struct {
	command.DaemonFlags
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the instances.
func (c *brokerStatusCmd) Run(e *command.Env) error {
	if err := c.Known(); err != nil {
		return err
	}
	status, err := admin.BrokerStatus.Do(e.Ctx, c.Target(e), admin.None{}, nil)
	if err != nil {
		return err
	}
	if c.JSON {
		return command.WriteJSON(e.Out, status)
	}
	t := tabwriter.NewWriter(e.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "SERVICE\tPREPARED")
	for _, s := range status.Services {
		prepared := "yes"
		if !s.Prepared {
			prepared = "no: " + e.Called(databroker.PrepareCommand(s.Name)) + datadir.Flag(c.DataDir)
		}
		fmt.Fprintf(t, "%s\t%s\n", s.Name, prepared)
	}
	writeFiles(t, status.Files)
	if err := t.Flush(); err != nil || len(status.Instances) == 0 {
		return err
	}
	fmt.Fprintln(t, "\nSERVICE\tPLAN\tSTATE\tBINDINGS\tDISK\tADDRESS\tINSTANCE")
	for _, i := range status.Instances {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", i.Service, i.Plan, i.State, i.Bindings, command.BytesText(i.UsedBytes), cmp.Or(i.Address, "-"), i.GUID)
	}
	return t.Flush()
}
