package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cupola/rootfs/oci"
	images "cupola/rootfs/registry"
	"cupola/runtime/authority"
)

// source has one image with one layer.
type source struct {
	image images.Image
	dir   string
}

func newSource(t *testing.T) source {
	t.Helper()
	s := source{dir: t.TempDir(), image: images.Image{Manifest: []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json"}`), Config: []byte(`{"os":"linux"}`),
		Layers: []images.Layer{{Digest: oci.Digest([]byte("a layer"))}}}}
	s.image.Digest = oci.Digest(s.image.Manifest)
	if err := os.WriteFile(filepath.Join(s.dir, "layer"), []byte("a layer"), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

var errUnknown = errors.New("unknown")

func (s source) Image(digest string) (images.Image, error) {
	if digest != s.image.Digest {
		return images.Image{}, errUnknown
	}
	return s.image, nil
}

func (s source) OpenLayer(image, layer string) (*os.File, error) {
	if image != s.image.Digest || layer != s.image.Layers[0].Digest {
		return nil, errUnknown
	}
	return os.Open(filepath.Join(s.dir, "layer"))
}

func open(t *testing.T, s Source, dir, address string) *Registry {
	t.Helper()
	r := &Registry{Source: s, Address: address}
	if err := r.Open(dir); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRegistry(t *testing.T) {
	s := newSource(t)
	r := open(t, s, t.TempDir(), "192.0.2.1:5443")
	hex, layer, config := strings.TrimPrefix(s.image.Digest, "sha256:"), s.image.Layers[0].Digest, oci.Digest(s.image.Config)
	if got := r.Reference(s.image.Digest); got != "192.0.2.1:5443/droplets/"+hex+"@"+s.image.Digest {
		t.Errorf("got the reference %s", got)
	}
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	at, other := "/v2/droplets/"+hex, "/v2/droplets/"+strings.Repeat("0", 64)
	for _, c := range []struct {
		method, path, ask string
		status            int
		body, kind        string
	}{
		{"GET", "/v2/", "", 200, "", ""},
		{"GET", at + "/manifests/" + s.image.Digest, "", 200, string(s.image.Manifest), "application/vnd.oci.image.manifest.v1+json"},
		{"HEAD", at + "/manifests/" + s.image.Digest, "", 200, "", "application/vnd.oci.image.manifest.v1+json"},
		{"GET", at + "/blobs/" + config, "", 200, string(s.image.Config), "application/octet-stream"},
		{"GET", at + "/blobs/" + layer, "", 200, "a layer", "application/octet-stream"},
		{"GET", at + "/blobs/" + layer, "bytes=2-", 206, "layer", "application/octet-stream"},
		{"GET", at + "/manifests/latest", "", 404, "MANIFEST_UNKNOWN", ""},
		{"GET", at + "/manifests/" + config, "", 404, "MANIFEST_UNKNOWN", ""},
		{"GET", other + "/manifests/" + s.image.Digest, "", 404, "MANIFEST_UNKNOWN", ""},
		{"GET", other + "/blobs/" + layer, "", 404, "BLOB_UNKNOWN", ""},
		{"GET", at + "/blobs/sha256:..%2F..%2Fetc", "", 404, "BLOB_UNKNOWN", ""},
		{"GET", "/v2/droplets/%2e%2e/blobs/" + layer, "", 404, "BLOB_UNKNOWN", ""},
		{"GET", "/v2/_catalog", "", 404, "NAME_UNKNOWN", ""},
		{"POST", at + "/blobs/uploads/", "", 405, "UNSUPPORTED", ""},
		{"PUT", at + "/manifests/" + s.image.Digest, "", 405, "UNSUPPORTED", ""},
		{"DELETE", at + "/manifests/" + s.image.Digest, "", 405, "UNSUPPORTED", ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, server.URL+c.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("edge", r.Password("edge"))
		if c.ask != "" {
			req.Header.Set("Range", c.ask)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		body, kind := string(text), res.Header.Get("Content-Type")
		if err != nil || res.StatusCode != c.status || c.status < 300 && body != c.body || !strings.Contains(body, c.body) || c.kind != "" && kind != c.kind {
			t.Errorf("%s %s: got %s %s %q, %v; want %d %q", c.method, c.path, res.Status, kind, body, err, c.status, c.body)
		}
	}
}

// TestPasswords has each cell's own for as long as the data directory is there, and no other accepted.
func TestPasswords(t *testing.T) {
	dir := t.TempDir()
	r := open(t, newSource(t), dir, "192.0.2.1:5443")
	if r.Password("edge") != open(t, newSource(t), dir, "x:1").Password("edge") || r.Password("edge") == r.Password("other") || r.Password("edge") == open(t, newSource(t), t.TempDir(), "x:1").Password("edge") {
		t.Error("the passwords are not those of the cell and the data directory")
	}
	if info, err := os.Stat(filepath.Join(dir, "registry-key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info, err)
	}
	for user, password := range map[string]string{"edge": "", "": "", "other": r.Password("edge")} {
		req := httptest.NewRequest("GET", "/v2/", http.NoBody)
		req.SetBasicAuth(user, password)
		w := httptest.NewRecorder()
		r.Handler().ServeHTTP(w, req)
		if w.Code != 401 || w.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("user %q: got %d %v", user, w.Code, w.Header())
		}
	}
}

// TestServe pulls by TLS, with a certificate for the address that nodes are told.
func TestServe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	made, err := authority.Open(authority.Config{CertFile: filepath.Join(dir, "ca.pem"), KeyFile: filepath.Join(dir, "ca.key"), Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ca := func() (*authority.Authority, error) { return made, nil }
	r := open(t, newSource(t), dir, l.Addr().String())
	served := make(chan error, 1)
	ctx, end := context.WithCancel(t.Context())
	go func() { served <- r.Serve(ctx, l, ca, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		end()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	pem, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	req, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+l.Addr().String()+"/v2/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("edge", r.Password("edge"))
	res, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); res.StatusCode != 200 || err != nil {
		t.Errorf("got %s %s, %v", res.Status, body, err)
	}
}
