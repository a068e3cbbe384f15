package acme_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"cupola/runtime/authority"
	"cupola/server/acme"
	"cupola/server/acme/acmetest"
	"cupola/server/bulkhead"
	"cupola/server/certs"
	"cupola/server/router"
	"cupola/store"
	"cupola/store/cf"
)

// site is what cupola serves: plain and TLS listeners of the router with the certificates
// of a Source.
type site struct {
	*certs.Source
	t             *testing.T
	server        *acmetest.Server
	store         *store.Store
	config        acme.Config
	own           *authority.Authority
	status        string
	plain, secure net.Listener
	space         string
	muteHTTP      bool // challenges by HTTP-01 are not answered
	muteTLS       bool // nor those by TLS-ALPN-01
	local         *x509.CertPool
	stop          func() // ends Run
}

// newSite starts listeners, and an ACME server that reaches them.
func newSite(t *testing.T, life uint64, change func(*site, *acme.Config)) *site {
	t.Helper()
	s := &site{t: t, local: x509.NewCertPool()}
	dir := t.TempDir()
	var err error
	if s.store, err = store.Open(store.Config{Dir: filepath.Join(dir, "db"), Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.store.Close() })
	for _, l := range []*net.Listener{&s.plain, &s.secure} {
		if *l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	port := func(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }
	s.server = acmetest.Start(t, life, port(s.plain), port(s.secure))
	own, err := authority.Open(authority.Config{CertFile: dir + "/ca.pem", KeyFile: dir + "/ca.key", Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	s.local.AppendCertsFromPEM(own.Trust())
	s.status = filepath.Join(dir, acme.StatusFile)
	config := acme.Config{Flags: acme.Flags{Enabled: true, Directory: s.server.Directory(), CARoots: s.server.WriteCA(t), Email: "admin@example.com"}, Store: s.store, Domain: "localhost",
		HTTP: s.plain.Addr().String(), HTTPS: s.secure.Addr().String(), StatusFile: s.status, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(s, &config)
	}
	s.config, s.own = config, own
	s.seed()
	s.open()
	return s
}

// open opens the Source, and serves.
func (s *site) open() {
	s.t.Helper()
	log := slog.New(slog.DiscardHandler)
	local := &certs.Local{Authority: func() (*authority.Authority, error) { return s.own, nil }, APIHost: "api.localhost", Domain: "localhost", Log: log}
	var err error
	if s.Source, err = certs.New(certs.Config{Local: local, Store: s.store, Routed: func(string) bool { return true }, ACME: s.config, Log: log}); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	s.stop = func() { cancel(); <-done }
	s.t.Cleanup(func() { s.stop() })
	if err := s.Set(ctx); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		defer close(done)
		if err := s.Run(ctx); err != nil {
			s.t.Error(err)
		}
	}()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.muteHTTP || !s.ServeChallenge(w, r) {
			fmt.Fprint(w, "app")
		}
	})
	plain := &http.Server{Handler: h}
	speaks := s.TLS(certs.Callers{Guards: func(string) (string, bool) { return "", false }})
	answer := speaks.GetConfigForClient
	speaks.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if s.muteTLS && acme.IsChallenge(hello) {
			return nil, errors.New("mute")
		}
		return answer(hello)
	}
	secure := &http.Server{Handler: h, ErrorLog: stdlog.New(io.Discard, "", 0)}
	s.t.Cleanup(func() { plain.Close(); secure.Close() })
	go plain.Serve(s.plain)
	go secure.Serve(router.Guard(s.secure, speaks, router.NewGate(bulkhead.LimitsFor(1<<16))))
}

// seed makes a space, in which routes are.
func (s *site) seed() {
	s.write(func(tx *store.Tx) error {
		org := &cf.Org{Name: "org"}
		if err := store.Orgs.Insert(tx, org); err != nil {
			return err
		}
		space := &cf.Space{Name: "space", OrgGUID: org.GUID}
		err := store.Spaces.Insert(tx, space)
		s.space = space.GUID
		return err
	})
}

func (s *site) write(f func(*store.Tx) error) {
	s.t.Helper()
	if err := s.store.Write(context.Background(), f); err != nil {
		s.t.Fatal(err)
	}
}

// reopen opens the Source again, at other listeners.
func (s *site) reopen() {
	s.t.Helper()
	for _, l := range []*net.Listener{&s.plain, &s.secure} {
		(*l).Close()
		var err error
		if *l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			s.t.Fatal(err)
		}
	}
	s.open()
}

// once returns a connection to the first who dials.
func once(conn net.Conn) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) { return conn, nil }
}
