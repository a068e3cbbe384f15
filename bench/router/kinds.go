package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// kind is one kind of traffic.
type kind struct {
	name, title string
	secure      bool // TLS to the client
	app         bool // the backend is serveApp, else nginx
	direct      bool // the backend is measured, too
	connections []int
	load        load
}

// load sends traffic to a server for a while.
type load func(ctx context.Context, target *process, connections int, length time.Duration) (result, error)

// kinds are all kinds of traffic. dir is where prepare wrote what they need.
func kinds(dir string) []kind {
	upload := filepath.Join(dir, uploadScript)
	return []kind{
		{name: "plain", title: "Requests of a small page", direct: true, connections: []int{1, 8, 64, 256}, load: wrk("/")},
		{name: "large", title: "Requests of a page of 1 MB", connections: []int{1, 16}, load: wrk("/large")},
		{name: "upload", title: "Requests with a body of 1 MB", app: true, connections: []int{1, 16}, load: wrk("/", "-s", upload)},
		{name: "tls", title: "A small page with TLS 1.3 to the client, on kept connections", secure: true, connections: []int{1, 64}, load: wrk("/")},
		{name: "tls-large", title: "A page of 1 MB with TLS 1.3", secure: true, connections: []int{1, 16}, load: wrk("/large")},
		{name: "handshake", title: "A small page with TLS 1.3, each on a new connection", secure: true, connections: []int{8}, load: wrk("/", "-H", "Connection: close")},
		{name: "http2", title: "A small page with HTTP/2, 16 streams on each connection", secure: true, connections: []int{1, 16}, load: h2load("/")},
		{name: "http2-large", title: "A page of 1 MB with HTTP/2, 16 streams on each connection", secure: true, connections: []int{1, 4}, load: h2load("/large")},
		{name: "websocket", title: "Messages of 100 bytes on websockets, there and back", app: true, connections: []int{1, 64}, load: messages(100)},
		{name: "websocket-large", title: "Messages of 64 kB on websockets, there and back", app: true, connections: []int{1, 16}, load: messages(64 << 10)},
	}
}

func names(kinds []kind) (all []string) {
	for _, k := range kinds {
		all = append(all, k.name)
	}
	return all
}

const (
	megabyte     = 1 << 20
	uploadScript = "upload.lua"
)

// prepare writes the files that the servers and loads need.
func prepare(dir string) error {
	if err := os.Chmod(dir, 0o755); err != nil { // nginx's workers have a user of their own
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "large"), bytes.Repeat([]byte("0123456789abcdef"), megabyte/16), 0o644); err != nil {
		return err
	}
	script := fmt.Sprintf("wrk.method = 'POST'\nwrk.body = string.rep('x', %d)\n", megabyte)
	if err := os.WriteFile(filepath.Join(dir, uploadScript), []byte(script), 0o644); err != nil {
		return err
	}
	return makeCertificate(dir)
}
