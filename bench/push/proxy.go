package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"cupola/bench/daemon"
)

// call is one request of a push.
type call struct {
	what       string // method and path
	begin, end time.Time
}

// proxy passes calls on to a daemon and remembers them.
type proxy struct {
	daemon *daemon.Daemon
	addr   string
	server *http.Server

	mu    sync.Mutex
	calls []call
}

func newProxy(d *daemon.Daemon) (*proxy, error) {
	target, err := url.Parse(d.URL())
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{daemon: d, addr: l.Addr().String()}
	forward := &httputil.ReverseProxy{
		FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), // the command leaves streams when it has seen enough
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // the URLs in answers lead here again
		},
	}
	p.server = &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := call{what: r.Method + " " + r.URL.Path, begin: time.Now()}
		forward.ServeHTTP(w, r)
		c.end = time.Now()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.calls = append(p.calls, c)
	})}
	go func() { _ = p.server.Serve(l) }()
	return p, nil
}

func (p *proxy) close() { p.server.Close() }

// phase is a part of a push.
type phase struct {
	name string
	took time.Duration
}

// push pushes the app and fetches its page.
func (p *proxy) push(ctx context.Context, dir, name string) ([]phase, error) {
	p.mu.Lock()
	p.calls = nil
	p.mu.Unlock()
	begin := time.Now()
	if err := p.daemon.Push(ctx, "http://"+p.addr, dir, name); err != nil {
		return nil, err
	}
	pushed := time.Now()
	if err := p.fetch(ctx, name+".localhost"); err != nil {
		return nil, err
	}
	return p.split(begin, pushed, time.Now())
}

// fetch gets the app's page, asking again until it is there.
func (p *proxy) fetch(ctx context.Context, host string) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.daemon.URL(), nil)
		if err != nil {
			return err
		}
		req.Host = host
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return err
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the app answers %s: %w", res.Status, ctx.Err())
		}
	}
}

// split cuts a push where the first call of each phase begins.
func (p *proxy) split(begin, pushed, served time.Time) ([]phase, error) {
	marks := []struct{ name, first string }{
		{"the command's own start", "POST /oauth/token"},
		{"login", "GET /v3/organizations"},
		{"target, manifest", "POST /v3/packages"},
		{"package, upload", "POST /v3/builds"},
		{"staging", "PATCH /v3/apps/"},
	}
	var phases []phase
	at := begin
	for _, m := range marks {
		next, ok := p.first(m.first)
		if !ok {
			return nil, errors.New("the push made no call " + m.first)
		}
		phases = append(phases, phase{m.name, next.Sub(at)})
		at = next
	}
	return append(phases, phase{"start until an instance runs", pushed.Sub(at)}, phase{"first 200", served.Sub(pushed)}, phase{"all", served.Sub(begin)}), nil
}

func (p *proxy) first(prefix string) (at time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if strings.HasPrefix(c.what, prefix) && (!ok || c.begin.Before(at)) {
			at, ok = c.begin, true
		}
	}
	return at, ok
}

// show lists the calls in the order in which they ended.
func (p *proxy) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		fmt.Printf("    %6s  %6s ms  %s\n", ms(c.begin.Sub(p.calls[0].begin)), ms(c.end.Sub(c.begin)), c.what)
	}
}
