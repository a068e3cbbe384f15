package main

import (
	"fmt"
	"text/tabwriter"

	"cupola/server/admin"
)

type tokenKeysCmd struct {
	List   tokenKeysListCmd   `cmd:"" default:"withargs" help:"${help_token_keys_list}"`
	Rotate tokenKeysRotateCmd `cmd:"" help:"${help_token_keys_rotate}"`
}

type tokenKeysListCmd struct{ daemonFlags }

// Run prints a line for each key.
func (c *tokenKeysListCmd) Run(e *env) error {
	keys, err := admin.KeyList.Do(e.ctx, c.target(e), admin.None{}, nil)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(e.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "KEY\tMADE\tVERIFIES UNTIL")
	for _, k := range keys {
		until := "it signs"
		if !k.Until.IsZero() {
			until = when(k.Until)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", k.ID, when(k.Made), until)
	}
	return t.Flush()
}

type tokenKeysRotateCmd struct {
	daemonFlags
	admin.RotateRequest
}

// Run prints the ID of the new key.
func (c *tokenKeysRotateCmd) Run(e *env) error {
	next, err := admin.KeyRotate.Do(e.ctx, c.target(e), c.RotateRequest, nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(e.out, next.ID)
	return nil
}
