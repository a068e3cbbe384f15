// Command hello-go is a web app that uses nothing but the standard library.
//
// It listens on $PORT, logs requests to stdout and trouble to stderr, and on SIGTERM finishes what it is answering.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// drain is how long requests in flight may take after SIGTERM; the platform kills ten seconds after it.
const drain = 9 * time.Second

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()

	app := newApp()
	listener, err := net.Listen("tcp", net.JoinHostPort(env("VCAP_APP_HOST", "0.0.0.0"), env("PORT", "8080")))
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: app, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener) }()
	fmt.Printf("%s: instance %s listening on %s\n", app.name, app.index, listener.Addr())

	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	fmt.Printf("%s: instance %s stopping\n", app.name, app.index)
	timeout, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	if err := srv.Shutdown(timeout); err != nil {
		return fmt.Errorf("stopping: %w", err)
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// env is the variable's value, or fallback when it is unset or empty.
func env(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}
