package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func configIn(dir string) Config {
	return Config{CertFile: filepath.Join(dir, "ca.crt"), KeyFile: filepath.Join(dir, "keys", "ca.key"), Name: "test CA"}
}

func open(t *testing.T, c Config) *Authority {
	t.Helper()
	a, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

const year = 365 * 24 * time.Hour

// issue makes a certificate that is good for two years.
func issue(t *testing.T, a *Authority) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := a.Issue(x509.Certificate{Subject: pkix.Name{CommonName: "leaf"}, DNSNames: []string{"leaf.test"}, NotAfter: time.Now().Add(2 * year)}, &key.PublicKey)
	if err != nil || len(chain) != 2 {
		t.Fatalf("got %d certificates, %v", len(chain), err)
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func accepts(t *testing.T, trust []byte, leaf *x509.Certificate) bool {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(trust) {
		t.Fatalf("no certificate in %s", trust)
	}
	_, err := leaf.Verify(x509.VerifyOptions{DNSName: "leaf.test", Roots: pool, CurrentTime: time.Now()})
	return err == nil
}

func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := configIn(t.TempDir())
		a := open(t, c)
		trusted := a.Trust() // by somebody who never looks again
		first := issue(t, a)
		if again := open(t, c); string(again.Trust()) != string(trusted) {
			t.Error("got another authority")
		}
		time.Sleep(6 * year)
		if issue(t, a); string(a.Trust()) != string(trusted) {
			t.Error("renewed too early")
		}
		before := issue(t, a)
		time.Sleep(year + time.Hour)
		after := issue(t, a) // by one that runs all the time
		if a.certs[0].NotAfter.Before(after.NotAfter) || len(a.certs) != 2 {
			t.Fatalf("got %d certificates, the first until %s", len(a.certs), a.certs[0].NotAfter)
		}
		if !accepts(t, trusted, after) || !accepts(t, trusted, before) || !accepts(t, a.Trust(), before) || !accepts(t, a.Trust(), after) || !a.Issued(before) || !a.Issued(first) {
			t.Error("what is trusted is not accepted")
		}
		if again := open(t, c); string(again.Trust()) != string(a.Trust()) {
			t.Error("the renewed one was not kept")
		}
		time.Sleep(4 * year)
		if again := open(t, c); len(again.certs) != 2 { // the file still has the one that has ended
			t.Errorf("got %d certificates", len(again.certs))
		}
		time.Sleep(10 * year) // while there was no daemon
		late := open(t, c)
		if !accepts(t, late.Trust(), issue(t, late)) || len(late.certs) != 1 || !late.Issued(first) {
			t.Errorf("got %d certificates", len(late.certs))
		}
	})
}

func TestRenewalThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		c := configIn(dir)
		a := open(t, c)
		if err := os.Mkdir(c.CertFile+".new", 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(9 * year)
		if leaf := issue(t, a); !accepts(t, a.Trust(), leaf) {
			t.Error("the old one does not go on")
		}
		time.Sleep(2 * year)
		if _, err := a.Issue(x509.Certificate{}, &a.key.PublicKey); err == nil || !strings.Contains(err.Error(), "renew certificate authority "+c.CertFile) {
			t.Errorf("got %v", err)
		}
	})
}

func TestFiles(t *testing.T) {
	c := configIn(filepath.Join(t.TempDir(), "new"))
	first := open(t, c)
	if info, err := os.Stat(c.KeyFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v; want mode 0600", info, err)
	}
	for _, missing := range []string{c.CertFile, c.KeyFile} { // as a crash may leave it
		before := open(t, c)
		if err := os.Remove(missing); err != nil {
			t.Fatal(err)
		}
		if after := open(t, c); string(after.Trust()) == string(before.Trust()) {
			t.Errorf("got the same authority without %s", missing)
		}
	}
	for _, text := range []string{string(first.Trust()), "no PEM", ""} {
		if err := os.WriteFile(c.CertFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(c); err == nil || !strings.Contains(err.Error(), c.CertFile) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

// TestAPairOutlivesAFullDisk replaces a pair where there is no room for another.
func TestAPairOutlivesAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=16k"); err != nil {
		t.Skip("needs root for a small file system:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	files := [2]string{filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if err := WritePair(files[0], files[1], [][]byte{[]byte("old")}, key); err != nil {
		t.Fatal(err)
	}
	want := read(t, files)
	for _, certificate := range []int{1 << 10, 1 << 20} { // the key has no room, or the certificate
		if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, max(0, 8<<10-certificate)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := WritePair(files[0], files[1], [][]byte{make([]byte, certificate)}, key); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("got %v; want no space left", err)
		}
		if got := read(t, files); got != want {
			t.Errorf("the pair is no longer what it was")
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 3 {
		t.Errorf("left %v; want the pair and the filler", entries)
	}
}

func read(t *testing.T, files [2]string) (content [2]string) {
	t.Helper()
	for i, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		content[i] = string(text)
	}
	return content
}
