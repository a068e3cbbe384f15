package acme_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cupola/server/acme"
	"cupola/store"
	"cupola/store/cf"
)

// mapped makes a domain with a route to an app.
func (s *site) mapped(host, domain string, internal bool) (route *cf.Route) {
	s.t.Helper()
	s.write(func(tx *store.Tx) error {
		d := &cf.Domain{Name: domain, Internal: internal}
		if err := store.Domains.Insert(tx, d); err != nil {
			return err
		}
		route = &cf.Route{SpaceGUID: s.space, DomainGUID: d.GUID, Host: host, Destinations: []cf.Destination{{GUID: "destination-" + domain, AppGUID: "app"}}}
		return store.Routes.Insert(tx, route)
	})
	return route
}

// get asks for a page as a client that trusts some CAs does, on a connection of its own.
func (s *site) get(name string, roots *x509.CertPool) (leaf *x509.Certificate, err error) {
	conn, err := (&tls.Dialer{Config: &tls.Config{ServerName: name, RootCAs: roots, NextProtos: []string{"http/1.1"}}}).DialContext(context.Background(), "tcp", s.secure.Addr().String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	leaf = conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
	client := &http.Client{Transport: &http.Transport{DialTLSContext: once(conn), DisableKeepAlives: true}}
	res, err := client.Get("https://" + name + "/")
	if err != nil {
		return leaf, err
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "app" {
		return leaf, fmt.Errorf("got %q, %w", body, err)
	}
	return leaf, nil
}

// until waits for something; the test's timeout bounds it.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for !f() {
		select {
		case <-t.Context().Done():
			t.Fatal(what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// issued waits until clients that trust the ACME server's CA accept a name.
func (s *site) issued(name string) (leaf *x509.Certificate) {
	s.t.Helper()
	until(s.t, "no certificate for "+name, func() bool {
		var err error
		leaf, err = s.get(name, s.server.Roots())
		return err == nil
	})
	return leaf
}

// TestIssuance gets certificates by each challenge for names that are mapped, and for no
// other, and keeps them, sealed, over a restart without the ACME server.
func TestIssuance(t *testing.T) {
	for name, mute := range map[string]func(*site, *acme.Config){
		"HTTP-01":     func(s *site, _ *acme.Config) { s.muteTLS = true },
		"TLS-ALPN-01": func(s *site, _ *acme.Config) { s.muteHTTP = true },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 3600, mute)
			s.mapped("app", "in.internal", true)
			s.mapped("*", "wild.example", false)
			s.mapped("app", "closed.test", false)
			s.mapped("www", "shop.example", false)
			if _, err := s.get("www.shop.example", s.local); err != nil {
				t.Error("before it is issued, with the certificate of the machine's CA:", err)
			}
			first := s.issued("www.shop.example")
			for _, other := range []string{"stranger.example", "x.wild.example", "app.closed.test", "api.localhost"} {
				if _, err := s.get(other, s.local); err != nil {
					t.Errorf("%s: %v", other, err)
				}
			}
			if st, _ := s.Status(); st.Valid != 1 || st.Missing != 0 || st.Failing != 0 {
				t.Errorf("got %+v; want one name", st)
			}
			s.restarted(first)
		})
	}
}

// restarted opens the Source again, without the ACME server.
func (s *site) restarted(first *x509.Certificate) {
	s.t.Helper()
	s.stop()
	s.server.Close()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(s.status), "db", "*.db*"))
	if err != nil || len(files) == 0 {
		s.t.Fatal(files, err)
	}
	for _, name := range files {
		if text, err := os.ReadFile(name); err != nil || bytes.Contains(text, []byte("PRIVATE KEY")) || bytes.Contains(text, []byte("privateKey")) {
			s.t.Errorf("%s holds a key in plain text, or %v", name, err)
		}
	}
	s.reopen()
	if again, err := s.get("www.shop.example", s.server.Roots()); err != nil || !again.Equal(first) {
		s.t.Errorf("after a restart: %v; want the certificate of before", err)
	}
}

// TestWildcardsByDNS gets a certificate for all hosts of a domain by a command that makes
// DNS records.
func TestWildcardsByDNS(t *testing.T) {
	s := newSite(t, 3600, func(s *site, c *acme.Config) {
		c.DNSHook = filepath.Join(t.TempDir(), "hook")
		script := fmt.Sprintf("#!/bin/sh\ncase $1 in\npresent) echo \"$3\" >%[1]s/$2 ;;\ncleanup) rm %[1]s/$2 && echo $2 >>%[1]s/cleaned ;;\nesac\n", s.server.Records)
		if err := os.WriteFile(c.DNSHook, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	})
	s.mapped("app", "wild.example", false)
	leaf := s.issued("any.wild.example")
	if len(leaf.DNSNames) != 1 || leaf.DNSNames[0] != "*.wild.example" {
		t.Errorf("got %q", leaf.DNSNames)
	}
	if cleaned, err := os.ReadFile(filepath.Join(s.server.Records, "cleaned")); err != nil || string(cleaned) != "_acme-challenge.wild.example\n" {
		t.Errorf("got %q, %v; want the record removed", cleaned, err)
	}
}

// TestRenewal renews a short-lived certificate twice while clients come: each gets an
// answer, with a certificate that is valid.
func TestRenewal(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for certificates to near their end")
	}
	s := newSite(t, 15, func(_ *site, c *acme.Config) { c.Check = time.Second })
	s.mapped("www", "shop.example", false)
	seen := map[string]bool{s.issued("www.shop.example").SerialNumber.String(): true}
	var mu sync.Mutex
	var answered atomic.Int64
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				leaf, err := s.get("www.shop.example", s.server.Roots())
				if err != nil {
					t.Errorf("a request was lost: %v", err)
					return
				}
				answered.Add(1)
				mu.Lock()
				seen[leaf.SerialNumber.String()] = true
				mu.Unlock()
				time.Sleep(20 * time.Millisecond) // handshakes take the processors of other tests
			}
		})
	}
	until(t, "not renewed twice", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(seen) >= 3 || t.Failed()
	})
	close(stop)
	clients.Wait()
	t.Logf("%d requests, %d certificates", answered.Load(), len(seen))
}

// TestFailures wants the certificate of the machine's CA shown, the failure told and the
// server left alone while it refuses; another attempt follows when the route is mapped
// once more.
func TestFailures(t *testing.T) {
	order := func(status int, problem string) func(*http.Request) (int, string) {
		return func(r *http.Request) (int, string) {
			if strings.HasSuffix(r.URL.Path, "/order-plz") {
				return status, problem
			}
			return 0, ""
		}
	}
	for name, c := range map[string]struct {
		refuse func(*http.Request) (int, string)
		want   string
	}{
		"down":         {func(*http.Request) (int, string) { panic(http.ErrAbortHandler) }, "EOF"},
		"rate limited": {order(429, `{"type": "urn:ietf:params:acme:error:rateLimited", "detail": "too many certificates already issued", "status": 429}`), "too many certificates already issued"},
		"refused":      {order(403, `{"type": "urn:ietf:params:acme:error:rejectedIdentifier", "detail": "policy forbids issuing for name", "status": 403}`), "policy forbids issuing for name"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 3600, nil)
			s.server.Refuse(c.refuse)
			route := s.mapped("www", "shop.example", false)
			var failures []acme.Failure
			until(t, "no failure is told", func() bool {
				failures, _ = acme.ReadFailures(s.status)
				return len(failures) > 0
			})
			if f := failures[0]; f.Name != "www.shop.example" || !strings.Contains(f.Error, c.want) || f.At.IsZero() {
				t.Errorf("got %+v; want %s", f, c.want)
			}
			if st, _ := s.Status(); st.Failing != 1 || st.Missing != 1 || st.Failed < 1 {
				t.Errorf("got %+v", st)
			}
			if _, err := s.get("www.shop.example", s.local); err != nil {
				t.Error("meanwhile:", err)
			}
			if n := s.server.Orders(); n > 3 {
				t.Errorf("the server got %d orders; want it left alone", n)
			}
			s.server.Refuse(nil)
			s.write(func(tx *store.Tx) error { return store.Routes.Delete(tx, route.GUID) })
			until(t, "the name is not forgotten", func() bool { st, _ := s.Status(); return st.Missing == 0 })
			s.write(func(tx *store.Tx) error { route.GUID = ""; return store.Routes.Insert(tx, route) })
			s.issued("www.shop.example")
			if failures, err := acme.ReadFailures(s.status); err != nil || len(failures) != 0 {
				t.Errorf("got %v, %v; want none", failures, err)
			}
		})
	}
}

func TestFlags(t *testing.T) {
	good := acme.Flags{Enabled: true, Directory: "https://ca.example/dir"}
	for _, c := range []struct {
		change func(*acme.Flags)
		https  string
		want   string
	}{
		{func(*acme.Flags) {}, ":443", ""},
		{func(f *acme.Flags) { *f = acme.Flags{} }, "off", ""},
		{func(*acme.Flags) {}, "off", "invalid --acme: --https is off"},
		{func(f *acme.Flags) { f.Directory = "http://ca.example" }, ":443", "invalid --acme-directory"},
		{func(f *acme.Flags) { f.Email = "x" }, ":443", "invalid --acme-email"},
		{func(f *acme.Flags) { f.Enabled, f.DNSHook = false, "x" }, ":443", "give --acme, too"},
	} {
		f := good
		c.change(&f)
		if err := f.Check(c.https); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: got %v; want %q", f, err, c.want)
		}
	}
}
