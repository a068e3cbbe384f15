package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// syslogServer takes RFC 5424 messages in the frames of RFC 6587.
type syslogServer struct {
	net.Listener
	messages chan string
	gone     context.Context // ends the connections
	leave    func()
}

func (s *syslogServer) end() {
	s.Close()
	s.leave()
}

func startSyslog(t *testing.T, address string, config *tls.Config) *syslogServer {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	gone, leave := context.WithCancel(t.Context())
	s := &syslogServer{Listener: l, messages: make(chan string, 10_000), gone: gone, leave: leave}
	t.Cleanup(s.end)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.receive(c)
		}
	}()
	return s
}

func (s *syslogServer) receive(c net.Conn) {
	defer context.AfterFunc(s.gone, func() { c.Close() })()
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		length, err := r.ReadString(' ')
		if err != nil {
			return
		}
		n, err := strconv.Atoi(strings.TrimSpace(length))
		if err != nil || n > 1<<20 {
			s.messages <- "no frame: " + length
			return
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil {
			return
		}
		s.messages <- string(b)
	}
}

// gets waits for a message that has all the parts.
func (s *syslogServer) gets(t *testing.T, parts ...string) {
	t.Helper()
	var last []string
	for limit := time.After(20 * time.Second); ; {
		select {
		case m := <-s.messages:
			missing := ""
			for _, p := range parts {
				if !strings.Contains(m, p) {
					missing = p
				}
			}
			if missing == "" {
				return
			}
			last = append(last, m)
		case <-limit:
			t.Fatalf("got no message with %q; the last are %q", parts, last[max(0, len(last)-5):])
		}
	}
}

// TestDrains sends an app's log to syslog servers, one of which asks for a
// certificate, and one that goes and comes back.
func TestDrains(t *testing.T) {
	t.Parallel()
	files := newCertificate(t)
	pair, err := tls.LoadX509KeyPair(files.cert, files.key)
	if err != nil {
		t.Fatal(err)
	}
	text := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(text(files.ca)))
	secure := startSyslog(t, "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert})
	plain := startSyslog(t, "127.0.0.1:0", nil)

	d := startDaemon(t, needBinary(t))
	d.pushProbe("probe")
	drain := func(name, url string, credentials doc) {
		var made struct{ GUID string }
		d.api("POST", "/v3/service_instances", doc{"type": "user-provided", "name": name, "syslog_drain_url": url, "credentials": credentials,
			"relationships": doc{"space": toOne(d.first("/v3/spaces?names=dev"))}}, &made)
		d.bind("probe", made.GUID)
	}
	drain("plain", "syslog://"+plain.Addr().String(), doc{})
	drain("secure", "syslog-tls://"+secure.Addr().String(), doc{"cert": text(files.cert), "key": text(files.key), "ca": text(files.ca)})
	guid := d.app("probe")
	d.answers("probe", "ready")
	for _, s := range []*syslogServer{plain, secure} {
		s.gets(t, "<14>1 ", " cupola.dev.probe "+guid+" [RTR/0] - [tags@47450 ", `app_id="`+guid+`"`, `] probe.localhost - [`, `"GET / HTTP/1.1" 200`)
	}

	plain.end()
	d.answers("probe", "ready")
	again := startSyslog(t, plain.Addr().String(), nil)
	eventually(t, 30*time.Second, func() string {
		d.answers("probe", "ready")
		if len(again.messages) == 0 {
			return "nothing comes to the server that is back"
		}
		return ""
	})

	// Without the flag nothing is sent to this machine, and the app's log says so.
	d.kill()
	d.flags = []string{"--allow-loopback=false"}
	d.start()
	d.answers("probe", "ready")
	eventually(t, 20*time.Second, func() string {
		var log struct {
			Envelopes struct {
				Batch []struct {
					Tags map[string]string
					Log  struct{ Payload []byte }
				}
			}
		}
		d.api("GET", "/api/v1/read/"+guid+"?envelope_types=LOG&limit=1000", nil, &log)
		for _, e := range log.Envelopes.Batch {
			if e.Tags["source_type"] == "LGR" && strings.HasPrefix(string(e.Log.Payload), "Failed to connect to user provided syslog drain with url syslog://"+plain.Addr().String()) {
				return ""
			}
		}
		return "the app is not told that its drain is refused"
	})
}
