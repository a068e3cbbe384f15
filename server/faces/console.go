package faces

import (
	"context"

	"cupola/server/console"
	"cupola/web"
)

// openConsole opens the web console, whose streams end with polls.
func (f *Faces) openConsole(polls context.Context) (err error) {
	x := f.Executor
	assets, _ := web.FS()
	f.console, err = console.New(console.Config{Store: x.Store, UAA: f.UAA, Domain: x.Domain, Version: x.Version, Assets: assets, SSH: f.ssh, Stop: polls, Log: x.Log})
	return err
}

// Invite returns an address that logs one browser in to the console as a user,
// once and within a minute.
func (f *Faces) Invite(ctx context.Context, username string) (string, error) {
	path, err := f.console.Invite(ctx, username)
	if err != nil {
		return "", err
	}
	return f.Executor.ConsoleURL() + path, nil
}
