package drain

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/egress"
	"cupola/test/loopback"
)

// reports gathers the reports to apps.
type reports struct {
	mu    sync.Mutex
	texts []string
}

func (r *reports) add(app, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts = append(r.texts, app+": "+text)
}

func (r *reports) all() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.texts, "\n")
}

func open(t *testing.T, local bool) (*Drains, *reports) {
	t.Helper()
	r := &reports{}
	d := New(Config{Report: r.add, Where: egress.Guard{Local: local}})
	t.Cleanup(d.Close)
	return d, r
}

// read reads one frame.
func read(r *bufio.Reader) (string, error) {
	length, err := r.ReadString(' ')
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(strings.TrimSpace(length))
	if err != nil {
		return "", err
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return string(b), err
}

// accept accepts a connection and gives its frames.
func accept(t *testing.T, l net.Listener) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	return c, bufio.NewReader(c)
}

func TestFrame(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)
	tests := []struct {
		message Message
		want    string
	}{
		{Message{AppGUID: "guid", Instance: "0", Tags: map[string]string{"source_type": "APP/PROC/WEB", "b": `q"\]`}, At: at, Text: []byte("hello")},
			`<14>1 2026-01-02T03:04:05.678901+00:00 o.s.a guid [APP/PROC/WEB/0] - [tags@47450 app_id="guid" b="q\"\\\]" instance_id="0" source_type="APP/PROC/WEB"] hello` + "\n"},
		{Message{AppGUID: "guid", Instance: "1", At: at, Err: true, Text: []byte("a\x00b\n<14>1 forged")},
			`<11>1 2026-01-02T03:04:05.678901+00:00 o.s.a guid - - [tags@47450 app_id="guid" instance_id="1"] ab` + "\n<14>1 forged\n"},
		{Message{AppGUID: "guid", Instance: "0", Tags: map[string]string{"source_type": "APP/TASK/my task\n", "]=\"": "x"}, At: at},
			`<14>1 2026-01-02T03:04:05.678901+00:00 o.s.a guid [APP/TASK/MY-TASK/0] - [tags@47450 app_id="guid" instance_id="0" source_type="APP/TASK/my task` + "\n\"] \n"},
	}
	for _, test := range tests {
		got, err := read(bufio.NewReader(strings.NewReader(string(frame("o.s.a", test.message)))))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("frame (-want +got):\n%s", diff)
		}
	}
}

func TestHostname(t *testing.T) {
	if got, want := hostname("my org", "späce_1", strings.Repeat("a", 62)+"--"), "my-org.spce1."+strings.Repeat("a", 62); got != want {
		t.Errorf("got %s; want %s", got, want)
	}
}

// TestReconnects closes each connection after a line. A line that is written
// before the end is seen may be lost, so there are always more.
func TestReconnects(t *testing.T) {
	d, _ := open(t, true)
	l := loopback.Listen(t)
	d.Set([]Drain{{AppGUID: "a", URL: "syslog://" + l.Addr().String(), Host: "h"}})
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	go func() {
		for range tick.C {
			d.Append(Message{AppGUID: "a", Text: []byte("a line")})
			d.Append(Message{AppGUID: "another", Text: []byte("not for it")})
		}
	}()
	for range 3 {
		c, frames := accept(t, l)
		if got, err := read(frames); err != nil || !strings.HasSuffix(got, " a line\n") {
			t.Fatalf("got %q, %v; want a line", got, err)
		}
		c.Close()
	}
}

// TestSetKeepsWhatStays makes a drain in use go on when another comes.
func TestSetKeepsWhatStays(t *testing.T) {
	d, _ := open(t, true)
	l := loopback.Listen(t)
	one := Drain{AppGUID: "a", URL: "syslog://" + l.Addr().String()}
	d.Set([]Drain{one, one})
	d.Append(Message{AppGUID: "a", Text: []byte("first")})
	c, frames := accept(t, l)
	if _, err := read(frames); err != nil {
		t.Fatal(err)
	}
	d.Set([]Drain{one, {AppGUID: "b", URL: "syslog://" + l.Addr().String()}})
	d.Append(Message{AppGUID: "a", Text: []byte("second")})
	if got, err := read(frames); err != nil || !strings.HasSuffix(got, "second\n") {
		t.Errorf("got %q, %v; want the second on the same connection, once", got, err)
	}
	d.Set(nil)
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := frames.ReadByte(); err != io.EOF {
		t.Errorf("got %v; want the connection closed", err)
	}
}

// TestNobodyWaits fills the queue of a drain that cannot be reached.
func TestNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, told := open(t, false)
		d.Set([]Drain{{AppGUID: "a", URL: "syslog://joe:secret@127.0.0.1:1"}})
		d.Append(Message{AppGUID: "a"})
		synctest.Wait() // it is being sent
		for range queueSize + 7 {
			d.Append(Message{AppGUID: "a"})
		}
		time.Sleep(reportInterval + time.Second)
		synctest.Wait()
		const want = "a: 7 messages lost for application a in user provided syslog drain with url syslog://127.0.0.1:1"
		if got := told.all(); !strings.Contains(got, want) || strings.Contains(got, "secret") || !strings.Contains(got, egress.ErrAddress.Error()) {
			t.Errorf("got %q; want %q, and why", got, want)
		}
	})
}

// Long lines take no more memory than short ones.
func TestQueueIsBoundedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, told := open(t, false)
		d.Set([]Drain{{AppGUID: "a", URL: "syslog://127.0.0.1:1"}})
		line := make([]byte, 1<<20)
		d.Append(Message{AppGUID: "a", Text: line})
		synctest.Wait() // it is being sent
		for range queueBytes>>20 + 3 {
			d.Append(Message{AppGUID: "a", Text: line})
		}
		time.Sleep(reportInterval + time.Second)
		synctest.Wait()
		if got := told.all(); !strings.Contains(got, "a: 3 messages lost") {
			t.Errorf("got %q; want 3 messages lost", got)
		}
	})
}

func TestURLsRefused(t *testing.T) {
	for url, want := range map[string]string{"http://h": "must begin with syslog://", "syslog://%zz": "cannot be parsed"} {
		if _, err := (dialer{}).dial(t.Context(), Drain{URL: url}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want %q", url, err, want)
		}
	}
	for _, to := range []Drain{{CA: "x"}, {Cert: "x"}} {
		to.URL = "syslog-tls://192.0.2.1"
		if _, err := (dialer{}).dial(t.Context(), to); err == nil || !strings.Contains(err.Error(), "PEM") {
			t.Errorf("got %v; want to be told of the PEM", err)
		}
	}
}

// TestMutualTLS has a drain that asks for a certificate.
func TestMutualTLS(t *testing.T) {
	pair, certPEM, keyPEM := selfSigned(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(certPEM))
	l := tls.NewListener(loopback.Listen(t), &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool})
	d, _ := open(t, true)
	to := Drain{AppGUID: "a", URL: "syslog-tls://" + l.Addr().String(), CA: certPEM}
	if c, err := d.dial(t.Context(), Drain{URL: to.URL}); err == nil {
		c.Close()
		t.Error("a certificate that nobody vouches for was taken")
	}
	to.Cert, to.Key = certPEM, keyPEM
	d.Set([]Drain{to})
	d.Append(Message{AppGUID: "a", Text: []byte("in private")})
	for {
		_, frames := accept(t, l)
		got, err := read(frames)
		if err != nil {
			continue // the one without a certificate
		}
		if !strings.HasSuffix(got, "in private\n") {
			t.Errorf("got %q", got)
		}
		return
	}
}

func selfSigned(t *testing.T) (pair tls.Certificate, certPEM, keyPEM string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "drain"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	keyPEM = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
	pair, err = tls.X509KeyPair([]byte(certPEM), []byte(keyPEM))
	if err != nil {
		t.Fatal(err)
	}
	return pair, certPEM, keyPEM
}

// FuzzFrame holds that a frame's length is that of its message, and its header
// is one line of printable ASCII.
func FuzzFrame(f *testing.F) {
	f.Add("o.s.a", "APP/PROC/WEB", "0", "text")
	f.Add("", "]\"\n", "\x00", "\n<14>1 -")
	f.Fuzz(func(t *testing.T, host, source, instance, text string) {
		b := frame(host, Message{AppGUID: "guid", Instance: instance, Tags: map[string]string{source: source, "source_type": source}, Text: []byte(text)})
		got, err := read(bufio.NewReader(strings.NewReader(string(b))))
		if err != nil || len(b) != len(got)+len(strconv.Itoa(len(got)))+1 {
			t.Fatalf("got %q, %v; want a frame", b, err)
		}
		header, _, _ := strings.Cut(got, " - [tags@47450 ")
		for _, r := range header {
			if r < ' ' || r > '~' {
				t.Errorf("got the header %q", header)
			}
		}
	})
}
