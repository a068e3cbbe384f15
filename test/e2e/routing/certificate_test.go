package routing

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
	"cupola/test/loopback"
)

// writePair writes a self-signed certificate, and its key, of a name.
func writePair(t *testing.T, cert, key, name string) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &own.PublicKey, own)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// shows waits until a listener shows a certificate of a name to clients that ask for
// another.
func shows(t *testing.T, addr, ask, want string) {
	t.Helper()
	e2e.Eventually(t, time.Minute, func() string {
		dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: 10 * time.Second}, Config: &tls.Config{ServerName: ask, InsecureSkipVerify: true}} //nolint:gosec // looks at the certificate itself
		conn, err := dialer.DialContext(t.Context(), "tcp", addr)
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		if got := conn.(*tls.Conn).ConnectionState().PeerCertificates[0].DNSNames; !strings.Contains(strings.Join(got, " "), want) {
			return fmt.Sprintf("%s: got a certificate of %q; want %s", ask, got, want)
		}
		return ""
	})
}

// TestGivenCertificates gives a daemon a default certificate, and a domain its own; the
// first is replaced by its files, the second is there after a restore of a backup.
func TestGivenCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	writePair(t, file("default.pem"), file("default.key"), "first.example")
	writePair(t, file("shop.pem"), file("shop.key"), "*.shop.example")
	addr := fmt.Sprintf("127.0.0.1:%d", loopback.FreePorts(t, 1)[0])
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--https", addr, "--tls-cert", file("default.pem"), "--tls-key", file("default.key"))
	shows(t, addr, "stranger.example", "first.example")
	shows(t, addr, "api.localhost", "first.example")
	d.API("POST", "/v3/domains", e2e.Doc{"name": "shop.example"}, nil)
	shows(t, addr, "www.shop.example", "*.shop.example")
	command := func(verb string, args ...string) (string, error) {
		return d.Run(append([]string{"domain-certificate", verb, "--data-dir", d.Dir, "shop.example"}, args...)...)
	}
	if said, err := command("set", "--cert", file("default.pem"), "--key", file("default.key")); err == nil || !strings.Contains(said, "the certificate does not cover shop.example or *.shop.example") {
		t.Errorf("a certificate of another name: got %s, %v", said, err)
	}
	if said, err := command("set", "--cert", file("shop.pem"), "--key", file("shop.key")); err != nil || !strings.Contains(said, "Set the certificate of shop.example: it names *.shop.example") {
		t.Errorf("got %s, %v", said, err)
	}
	given := func() string {
		said, err := command("show")
		if err != nil || !strings.Contains(said, "Names:    *.shop.example\n") {
			t.Errorf("got %s, %v", said, err)
		}
		return said
	}
	before := given()
	writePair(t, file("default.pem"), file("default.key"), "second.example")
	shows(t, addr, "stranger.example", "second.example")
	if said, err := d.Run("backup", "--data-dir", d.Dir, file("backup")); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if said, err := command("delete"); err != nil {
		t.Errorf("got %s, %v", said, err)
	}
	if said, err := command("show"); err == nil || !strings.Contains(said, "Certificate not found") {
		t.Errorf("after it was deleted: got %s, %v", said, err)
	}
	d.Kill()
	old := *d
	d.Dir, d.Admin = e2e.NewDir(t), &e2e.AdminSession{}
	if err := os.Remove(d.Dir); err != nil { // restore makes it
		t.Fatal(err)
	}
	t.Cleanup(old.Destroy)
	if said, err := d.Run("restore", "--data-dir", d.Dir, file("backup")); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	d.Start()
	if after := given(); after != before {
		t.Errorf("got %s after a restore; want %s", after, before)
	}
	shows(t, addr, "www.shop.example", "*.shop.example")
}
