package static

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"cupola/runtime/contract"
)

// shutdownTimeout leaves time before the platform's SIGKILL, which comes 10 s
// after SIGTERM.
const shutdownTimeout = 8 * time.Second

// Main serves on $PORT (8080 when unset) until SIGTERM and returns the exit
// code. The arguments are the configuration file and the app's directory.
func Main(args []string) int {
	if len(args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: fileserver <config-file> <app-directory>")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	c, err := readConfig(args[0])
	if err == nil {
		err = serve(ctx, c, args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "static:", err)
		return 1
	}
	return 0
}

func serve(ctx context.Context, c Config, app string) error {
	handler, err := newHandler(c, app)
	if err != nil {
		return err
	}
	defer func() { _ = handler.Close() }()
	port := os.Getenv(contract.EnvPort)
	if port == "" {
		port = strconv.Itoa(contract.DefaultPort)
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", ":"+port)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           logged(handler, os.Stdout),
		ReadHeaderTimeout: 10 * time.Second,
		// Above the router's own, so that it never meets a closed connection.
		IdleTimeout: 120 * time.Second,
	}
	if c.HTTP2 {
		server.Protocols = new(http.Protocols)
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetUnencryptedHTTP2(true)
	}
	fmt.Printf("Serving %s on port %s.\n", filepath.Join(app, c.Root), port)
	return serveUntil(ctx, server, l)
}

// serveUntil serves on l until ctx ends, then waits for the requests in work.
func serveUntil(ctx context.Context, server *http.Server, l net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := server.Shutdown(stop)
	if errors.Is(err, context.DeadlineExceeded) {
		return server.Close()
	}
	return err
}
