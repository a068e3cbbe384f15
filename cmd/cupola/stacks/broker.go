package stacks

import (
	"cmp"
	"fmt"
	"text/tabwriter"

	"cupola/cmd/cupola/command"
	"cupola/server/admin"
	"cupola/server/admin/stack"
)

// BrokerCmd is cupola broker.
type BrokerCmd struct {
	Prepare brokerPrepareCmd `cmd:"" help:"Build the stack for the built-in service broker's databases."`
	Status  brokerStatusCmd  `cmd:""`
}

type brokerPrepareCmd struct {
	command.DaemonFlags
	Suite  string `help:"The distribution to build it from: debian12, debian13, jammy or noble." default:"debian12"`
	Mirror string `help:"URL of the package archive; by default this machine's apt source." placeholder:"URL"`
	Lock   string `help:"Build exactly the packages of this stack's lock file." type:"existingfile" placeholder:"FILE"`
}

// Run builds the stack.
func (c *brokerPrepareCmd) Run(e *command.Env) error {
	b, err := stack.ForDatabases(c.Suite)
	if err != nil {
		return err
	}
	b.Mirror = c.Mirror
	if c.Lock != "" {
		if b.Lock, err = readLock(c.Lock); err != nil {
			return err
		}
		b.Suite = b.Lock.Suite
	}
	p := command.NewProgress(e)
	info, err := admin.StackBuild.Do(e.Ctx, c.Target(e), b, p.Step)
	p.Clear()
	if err != nil {
		return command.Interrupted(e, err)
	}
	fmt.Fprintf(e.Out, "Built the stack %s: %s\n  rebuild it with   sudo cupola broker prepare --lock %s\n", info.Name, command.BytesText(info.Bytes), info.Lock)
	return nil
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
	fmt.Fprintln(t, "SERVICE\tPLAN\tSTATE\tBINDINGS\tDISK\tADDRESS\tINSTANCE")
	for _, i := range status {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", i.Service, i.Plan, i.State, i.Bindings, command.BytesText(i.UsedBytes), cmp.Or(i.Address, "-"), i.GUID)
	}
	return t.Flush()
}
