package main

import (
	"fmt"
	"os"
	"os/exec"

	"cupola/cmd/cupola/command"
	"cupola/server/admin"
)

type openCmd struct {
	command.DaemonFlags
	admin.OpenRequest
	URL bool `name:"url" help:"Print the address only, to be opened within a minute."`
}

// Run opens a browser at an address that logs it in. Without a screen it prints the
// address.
func (c *openCmd) Run(e *command.Env) error {
	address, err := admin.Open.Do(e.Ctx, c.Target(e), c.OpenRequest, nil)
	if err != nil {
		return err
	}
	if !c.URL && browse(e, address) {
		fmt.Fprintln(e.Out, "Opened the web console in your browser.")
		return nil
	}
	if !c.URL {
		fmt.Fprintln(e.Err, "Open this address within a minute; it logs in one browser, once:")
	}
	_, err = fmt.Fprintln(e.Out, address)
	return err
}

// browse opens an address in the browser of the user who called sudo, where there is
// a screen, and reports whether it did.
func browse(e *command.Env, address string) bool {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return false
	}
	args := []string{"xdg-open", address}
	if user := os.Getenv("SUDO_USER"); user != "" {
		args = append([]string{"sudo", "-u", user, "--preserve-env=DISPLAY,WAYLAND_DISPLAY,XAUTHORITY,DBUS_SESSION_BUS_ADDRESS"}, args...)
	}
	return exec.CommandContext(e.Ctx, args[0], args[1:]...).Run() == nil //nolint:gosec // the daemon's own address
}
