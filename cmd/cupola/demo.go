package main

import (
	"cupola/cmd/cupola/command"
	"cupola/cmd/cupola/push"

	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/examples"
	"cupola/server"
	"cupola/server/config"
	"cupola/server/doctor"
)

type demoCmd struct {
	Once bool   `help:"Stop and clean up once the page was served."`
	HTTP string `help:"Address of the API and of apps." default:"127.0.0.1:8080" env:"CUPOLA_HTTP" placeholder:"ADDR"`
}

// Run runs a daemon on a temporary directory, pushes the sample app to it and fetches
// its page. All of it ends with the command.
func (d *demoCmd) Run(e *command.Env) (err error) {
	dir, remove, err := doctor.TempDir("", "cupola-demo-")
	if err != nil {
		return err
	}
	over := endPatiently(e, dir)
	defer func() {
		err = endDemo(e, dir, err, remove)
		over()
	}()
	ctx, stop := context.WithCancel(e.Ctx)
	defer stop()
	ready, ended := make(chan server.Ready, 1), make(chan error, 1)
	started := time.Now()
	go func() {
		ended <- server.Run(ctx, config.Config{DataDir: dir, HTTP: freeAddr(d.HTTP), HTTPS: "off", Stop: config.StopApps, Log: e.Log},
			func(r server.Ready) { ready <- r })
	}()
	select {
	case err := <-ended:
		return err
	case r := <-ready:
		fmt.Fprintf(e.Out, "cupola started in %.1f s, on the stack %s\n\n", time.Since(started).Seconds(), r.Stack)
		err = d.show(ctx, e, r)
		if err == nil && !d.Once {
			fmt.Fprintf(e.Out, "\nRunning until Ctrl-C. In another terminal, push your own app:\n  cf login -a %s -u admin -p %s\n  cf push\n", apiURL(r), r.AdminPassword)
			<-ctx.Done()
		}
	}
	stop()
	err = errors.Join(err, <-ended)
	if err != nil && e.Ctx.Err() == nil {
		return fmt.Errorf("%w\n  to check this machine: sudo cupola doctor", err)
	}
	return err
}

// endPatiently keeps a second interrupt from ending the demo while it cleans up.
// It prints the clean-up command; a third interrupt exits immediately. over ends that.
func endPatiently(e *command.Env, dir string) (over func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	next := func() bool {
		select {
		case <-signals:
			return true
		case <-done:
			return false
		}
	}
	go func() {
		defer signal.Stop(signals)
		if !next() {
			return
		}
		fmt.Fprintln(e.Out, "\nCleaning up …")
		if next() {
			fmt.Fprintf(e.Out, "\n%s\n", e.Called("Still cleaning up. Interrupt again to stop now, and clean up later with\n  "+demoCleanup(dir)))
		}
	}()
	return func() { close(done) }
}

// demoCleanup returns the command that removes a demo that could not clean up.
func demoCleanup(dir string) string {
	return fmt.Sprintf("sudo cupola cleanup --data-dir %[1]s && sudo rm -r %[1]s", dir)
}

// endDemo removes the directory of a demo that ended with failed. Where that
// is an error something may still run, or be mounted in it.
func endDemo(e *command.Env, dir string, failed error, remove func() error) error {
	if _, err := os.Stat(filepath.Join(dir, "lock")); failed != nil && err == nil {
		err := cleanUp(context.WithoutCancel(e.Ctx), e, command.DaemonFlags{DataDir: dir})
		if err != nil {
			return fmt.Errorf("%w\n%w\n  to clean up: %s", failed, err, demoCleanup(dir))
		}
	}
	return errors.Join(failed, remove())
}

// freeAddr is addr, or the same with any free port where that one is taken.
func freeAddr(addr string) string {
	l, err := net.Listen("tcp", addr)
	if err == nil {
		l.Close()
		return addr
	}
	host, _, _ := net.SplitHostPort(addr)
	return net.JoinHostPort(host, "0")
}

func (d *demoCmd) show(ctx context.Context, e *command.Env, r server.Ready) error {
	c, err := capi.Login(ctx, r.HTTP, "admin", r.AdminPassword)
	if err != nil {
		return err
	}
	started := time.Now()
	page, err := (&push.Pusher{Client: c, Show: command.NewReport(e)}).Push(ctx, "cupola", "dev", push.App{Name: "demo", Files: examples.Demo()})
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "  %-10s in %.1f s\n\n", "done", time.Since(started).Seconds())
	status, title, err := fetch(ctx, page, r.HTTP)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "GET %s → %s  %q\n", page, status, title)
	return nil
}

// fetch gets a page and its title. It asks the daemon's listener whatever the
// page's name resolves to: *.localhost resolves in browsers and curl, and not
// in every libc.
func fetch(ctx context.Context, page, listener string) (status, title string, err error) {
	at, err := url.Parse(listener)
	if err != nil {
		return "", "", err
	}
	h := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, at.Host)
	}}}
	req, err := http.NewRequestWithContext(ctx, "GET", page, nil)
	if err != nil {
		return "", "", err
	}
	res, err := h.Do(req)
	if err != nil {
		return "", "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return "", "", err
	}
	if res.StatusCode != http.StatusOK {
		return "", "", fmt.Errorf("GET %s answered %s", page, res.Status)
	}
	_, rest, _ := strings.Cut(string(body), "<title>")
	title, _, _ = strings.Cut(rest, "</title>")
	return res.Status, strings.TrimSpace(title), nil
}
