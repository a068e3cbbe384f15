package server

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cupola/rootfs/reference"
	"cupola/rootfs/registry"
	"cupola/runtime/artifact"
	"cupola/runtime/egress"
	"cupola/runtime/egress/egresstest"
	"cupola/server/bosh/tarball"
	"cupola/server/drain"
	"cupola/server/router"
)

// dialer is a part of the daemon that connects to what somebody else names.
type dialer struct {
	name     string
	guard    egress.Guard
	connect  func(t *testing.T, g egress.Guard, address string) error
	redirect bool // whether it follows redirects, where address is of http
}

// dialers are those of the daemon, but for brokers, which have a test like this
// beside their security groups, and callbacks of the BBS, which go by the guard's
// transport as artifacts do.
func dialers() []dialer {
	operator := egress.Guard{Operator: true}
	return []dialer{
		{name: "route service", guard: egresstest.Strict, connect: askService},
		{name: "route service, --allow-loopback", guard: egresstest.Local, connect: askService},
		{name: "drain", guard: egresstest.Strict, connect: drainTo},
		{name: "drain, --allow-loopback", guard: egresstest.Local, connect: drainTo},
		{name: "registry", guard: egresstest.Strict, connect: askRegistry},
		{name: "registry, --allow-loopback", guard: egresstest.Local, connect: askRegistry, redirect: true},
		{name: "release", guard: egresstest.Strict, connect: fetchRelease},
		{name: "release, --allow-loopback", guard: egresstest.Local, connect: fetchRelease, redirect: true},
		{name: "an operator's archive", guard: operator, connect: fetchArchive, redirect: true},
		{name: "an operator's upload", guard: operator, connect: uploadArchive, redirect: true},
	}
}

// Nobody leads the daemon to itself, to containers or to a cloud's secrets: not by
// an address in any form, a name, or a redirect.
func TestDialersAreGuarded(t *testing.T) {
	n := egresstest.New(t)
	var to string
	redirector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+to+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer redirector.Close()
	for _, d := range dialers() {
		t.Run(d.name, func(t *testing.T) {
			var running sync.WaitGroup // a drain takes its time to report
			for _, target := range n.Refused(d.guard) {
				running.Go(func() {
					if err := d.connect(t, d.guard, target.Address); err == nil || !strings.Contains(err.Error(), egress.ErrAddress.Error()) {
						t.Errorf("%s (%s): got %v; want %v", target.Name, target.Address, err, egress.ErrAddress)
					}
				})
			}
			running.Wait()
			if !d.redirect {
				return
			}
			for _, target := range n.Refused(d.guard) {
				to = target.Address
				if err := d.connect(t, d.guard, strings.TrimPrefix(redirector.URL, "http://")); err == nil {
					t.Errorf("a redirect to %s (%s) was followed", target.Name, target.Address)
				}
			}
		})
	}
	if c := n.Connections(); c > 0 {
		t.Errorf("%d connections were made", c)
	}
}

// A proxy of the environment is used, but leads to no address that is refused.
func TestAProxyIsNoWayAround(t *testing.T) {
	n := egresstest.New(t)
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Host)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("NO_PROXY", "")
	for _, g := range []egress.Guard{egresstest.Strict, egresstest.Local, {Operator: true}} {
		client := &http.Client{Transport: g.Transport(5 * time.Second)}
		for _, target := range n.Refused(g) {
			if strings.Contains(target.Address, ".test:") {
				continue // the proxy finds the address, from where it is
			}
			res, err := client.Get("http://" + target.Address)
			if err == nil {
				res.Body.Close()
			}
			if !errors.Is(err, egress.ErrAddress) {
				t.Errorf("%s (%s): got %v; want %v", target.Name, target.Address, err, egress.ErrAddress)
			}
		}
	}
	if len(asked) > 0 || n.Connections() > 0 {
		t.Errorf("the proxy was asked for %v, and %d connections were made", asked, n.Connections())
	}
	res, err := (&http.Client{Transport: egresstest.Strict.Transport(5 * time.Second)}).Get("http://example.test/")
	if err != nil || res.StatusCode != http.StatusTeapot {
		t.Fatalf("got %v; want the proxy's answer", err)
	}
	res.Body.Close()
}

func askService(t *testing.T, g egress.Guard, address string) error {
	r := router.New(router.Config{Services: g, Log: slog.New(slog.DiscardHandler)})
	endpoint := router.Endpoint{Address: "127.0.0.1:1"}
	r.Set(router.Table{Routes: []router.Route{{Host: "app.test", AppGUID: "app", ServiceURL: "https://" + address, Endpoints: []router.Endpoint{endpoint}}}})
	w, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://app.test/", nil).WithContext(t.Context())
	r.ServeHTTP(w, req)
	if w.Code == http.StatusBadGateway {
		return errors.New(w.Header().Get("X-Cf-Routererror"))
	}
	return nil
}

func drainTo(t *testing.T, g egress.Guard, address string) error {
	reports := make(chan string, 1)
	d := drain.New(drain.Config{Where: g, Report: func(_, text string) {
		select {
		case reports <- text:
		default:
		}
	}})
	defer d.Close()
	d.Set([]drain.Drain{{AppGUID: "app", URL: "syslog://" + address}})
	d.Append(drain.Message{AppGUID: "app", At: time.Now(), Text: []byte("x")})
	select {
	case text := <-reports:
		return errors.New(text)
	case <-time.After(30 * time.Second):
		return nil
	}
}

func askRegistry(t *testing.T, g egress.Guard, address string) error {
	ref, err := reference.Parse("docker://" + address + "/team/app:1")
	if strings.HasPrefix(address, "[") && err != nil {
		return fmt.Errorf("%w: and no reference has it: %w", egress.ErrAddress, err)
	}
	if err != nil {
		return err
	}
	_, err = registry.New(registry.Config{Guard: &g}).Resolve(t.Context(), registry.Place{Ref: ref, Auth: registry.Auth{Username: "u", Password: "p"}})
	return err
}

func fetchRelease(t *testing.T, g egress.Guard, address string) error {
	f := tarball.Fetcher{Client: &http.Client{Transport: g.Transport(5 * time.Second)}}
	_, err := f.Fetch(t.Context(), "http://"+address+"/release.tgz", tarball.Want{})
	return err
}

func fetchArchive(t *testing.T, _ egress.Guard, address string) error {
	s, err := artifact.New(artifact.Config{Dir: t.TempDir()})
	if err != nil {
		return err
	}
	f, err := s.Fetch(t.Context(), artifact.Source{URL: "http://" + address + "/x"})
	f.Release()
	return err
}

func uploadArchive(t *testing.T, _ egress.Guard, address string) error {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := artifact.New(artifact.Config{Dir: t.TempDir()})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(f, "x"); err != nil {
		return err
	}
	return s.Upload(t.Context(), "http://"+address+"/x", f, 1)
}
