package logs

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

	"cupola/test/e2e"
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

// gets waits for a message that has all the parts, and has it said again meanwhile.
func (s *syslogServer) gets(t *testing.T, again func(), parts ...string) {
	t.Helper()
	var last []string
	for limit, tick := time.After(time.Minute), time.Tick(time.Second); ; {
		select {
		case <-tick: // what was said before the drain was there does not come
			again()
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
	files := e2e.NewCertificate(t)
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
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
	pool.AppendCertsFromPEM([]byte(text(files.CA)))
	secure := startSyslog(t, "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert})
	plain := startSyslog(t, "127.0.0.1:0", nil)

	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	d.PushProbe("probe")
	drain := func(name, url string, credentials e2e.Doc) {
		var made struct{ GUID string }
		d.API("POST", "/v3/service_instances", e2e.Doc{"type": "user-provided", "name": name, "syslog_drain_url": url, "credentials": credentials,
			"relationships": e2e.Doc{"space": e2e.ToOne(d.First("/v3/spaces?names=dev"))}}, &made)
		d.Bind("probe", made.GUID)
	}
	drain("plain", "syslog://"+plain.Addr().String(), e2e.Doc{})
	drain("secure", "syslog-tls://"+secure.Addr().String(), e2e.Doc{"cert": text(files.Cert), "key": text(files.Key), "ca": text(files.CA)})
	guid := d.App("probe")
	d.Answers("probe", "ready")
	for _, s := range []*syslogServer{plain, secure} {
		s.gets(t, func() { d.Answers("probe", "ready") }, "<14>1 ", " cupola.dev.probe "+guid+" [RTR/0] - [tags@47450 ", `app_id="`+guid+`"`, `] probe.localhost - [`, `"GET / HTTP/1.1" 200`)
	}

	plain.end()
	d.Answers("probe", "ready")
	again := startSyslog(t, plain.Addr().String(), nil)
	e2e.Eventually(t, time.Minute, func() string {
		d.Answers("probe", "ready")
		if len(again.messages) == 0 {
			return "nothing comes to the server that is back"
		}
		return ""
	})

	// Without the flag nothing is sent to this machine, and the app's log says so.
	d.Kill()
	d.Flags = []string{"--allow-loopback=false"}
	d.Start()
	e2e.Eventually(t, time.Minute, func() string {
		d.Answers("probe", "ready") // what was said before the drain was there does not come
		var log struct {
			Envelopes struct {
				Batch []struct {
					Tags map[string]string
					Log  struct{ Payload []byte }
				}
			}
		}
		d.API("GET", "/api/v1/read/"+guid+"?envelope_types=LOG&limit=1000", nil, &log)
		for _, e := range log.Envelopes.Batch {
			if e.Tags["source_type"] == "LGR" && strings.HasPrefix(string(e.Log.Payload), "Failed to connect to user provided syslog drain with url syslog://"+plain.Addr().String()) {
				return ""
			}
		}
		return "the app is not told that its drain is refused"
	})
}
