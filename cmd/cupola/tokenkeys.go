package main

import (
	"fmt"
	"text/tabwriter"

	"cupola/server"
)

type tokenKeysCmd struct {
	List   tokenKeysListCmd   `cmd:"" default:"withargs" help:"List the keys that verify tokens."`
	Rotate tokenKeysRotateCmd `cmd:"" help:"Sign with a new key. Tokens signed with other keys stay valid until they expire."`
}

type tokenKeysListCmd struct{ daemonFlags }

// Run prints a line for each key.
func (c *tokenKeysListCmd) Run(e *env) error {
	keys, err := server.TokenKeys(e.ctx, c.DataDir)
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
	Forget bool `help:"Revoke all tokens signed with other keys at once: all users must log in again. For compromised keys."`
}

// Run prints the ID of the new key.
func (c *tokenKeysRotateCmd) Run(e *env) error {
	next, err := server.RotateTokenKey(e.ctx, c.DataDir, c.Forget)
	if err != nil {
		return err
	}
	fmt.Fprintln(e.out, next.ID)
	return nil
}
