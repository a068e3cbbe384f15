package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"cupola/runtime/tunnel"
)

// agent is the process of an agent's pod. All work is done by the programs that the daemon runs next to it.
func agent() int {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
	return 0
}

// serveTunnel makes the connections that the daemon asks for, until it closes the standard input.
func serveTunnel() int {
	if err := tunnel.Serve(standard{os.Stdin, os.Stdout}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// standard are the standard streams as one.
type standard struct {
	io.ReadCloser
	out io.WriteCloser
}

func (s standard) Write(p []byte) (int, error) { return s.out.Write(p) }

func (s standard) Close() error { return errors.Join(s.ReadCloser.Close(), s.out.Close()) }
