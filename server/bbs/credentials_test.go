package bbs

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestMakeRenews checks that certificates are renewed in time, and that a
// client which keeps the CA and the pair of the first day can go on with them.
func TestMakeRenews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const year = 365 * 24 * time.Hour
		dir := t.TempDir()
		make := func() (f files, ca []byte, server *x509.Certificate) {
			t.Helper()
			f, err := makeFiles(dir, []string{"localhost"})
			if err != nil {
				t.Fatal(err)
			}
			if ca, err = os.ReadFile(f.CA); err != nil {
				t.Fatal(err)
			}
			pair, err := tls.LoadX509KeyPair(f.ServerCert, f.ServerKey)
			if err != nil {
				t.Fatal(err)
			}
			return f, ca, pair.Leaf
		}
		_, trusted, first := make()
		time.Sleep(year)
		if _, _, again := make(); !again.Equal(first) {
			t.Error("made anew too early")
		}
		time.Sleep(5 * year)
		f, _, _ := make()
		old, err := tls.LoadX509KeyPair(f.ClientCert, f.ClientKey)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(year + 24*time.Hour)
		f, ca, server := make()
		if string(ca) == string(trusted) {
			t.Error("the CA was not renewed")
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(trusted)
		if _, err := server.Verify(x509.VerifyOptions{DNSName: "localhost", Roots: pool}); err != nil {
			t.Error(err)
		}
		config, err := f.serverConfig()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := old.Leaf.Verify(x509.VerifyOptions{Roots: config.ClientCAs, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			t.Error(err)
		}
	})
}
