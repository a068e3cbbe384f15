package main

import (
	"fmt"
	"text/tabwriter"

	"cupola/cmd/cupola/command"
	"cupola/server/admin"
)

type tokenKeysCmd struct {
	List   tokenKeysListCmd   `cmd:"" default:"withargs"`
	Rotate tokenKeysRotateCmd `cmd:""`
}

type tokenKeysListCmd struct{ command.DaemonFlags }

// Run prints a line for each key.
func (c *tokenKeysListCmd) Run(e *command.Env) error {
	keys, err := admin.KeyList.Do(e.Ctx, c.Target(e), admin.None{}, nil)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(e.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "KEY\tMADE\tVERIFIES UNTIL")
	for _, k := range keys {
		until := "it signs"
		if !k.Until.IsZero() {
			until = command.When(k.Until)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", k.ID, command.When(k.Made), until)
	}
	return t.Flush()
}

type tokenKeysRotateCmd struct {
	command.DaemonFlags
	admin.RotateRequest
}

// Run prints the ID of the new key.
func (c *tokenKeysRotateCmd) Run(e *command.Env) error {
	next, err := admin.KeyRotate.Do(e.Ctx, c.Target(e), c.RotateRequest, nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(e.Out, next.ID)
	return nil
}
