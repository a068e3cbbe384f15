package registry

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/rootfs/oci"
	"cupola/rootfs/registry/registrytest"
)

// TestPush pushes to registries that want to know who it is, by what is given and by what docker's configuration has.
func TestPush(t *testing.T) {
	for _, mode := range []registrytest.Login{registrytest.None, registrytest.Basic, registrytest.Token} {
		t.Run(string(mode), func(t *testing.T) {
			reg := registrytest.New(t, mode)
			p := pushOf(t, reg, registrytest.Noise(1, 1<<20), registrytest.Noise(2, 10))
			var done, total int64
			p.Progress = func(d, of int64) { done, total = d, of }
			ref, err := (Config{RootCAs: reg.CAs()}).Push(t.Context(), p)
			if err != nil || ref.Digest != p.Digest || ref.Tag != "" {
				t.Fatalf("got %s, %v", ref, err)
			}
			if done < 1<<20 || done > total {
				t.Errorf("got %d of %d bytes told", done, total)
			}
			reg.Forget()
			home := t.TempDir()
			t.Setenv("HOME", home)
			t.Setenv("DOCKER_CONFIG", home)
			p.Auth = Auth{}
			if _, err := (Config{RootCAs: reg.CAs()}).Push(t.Context(), p); (err == nil) != (mode == registrytest.None) {
				t.Errorf("without credentials: got %v", err)
			} else if mode != registrytest.None && !errors.Is(err, errPushDenied) {
				t.Errorf("got %v; want ErrPushDenied", err)
			}
			writeDockerConfig(t, home, reg.Host)
			if _, err := (Config{RootCAs: reg.CAs()}).Push(t.Context(), p); err != nil {
				t.Errorf("by docker's configuration: got %v", err)
			}
			if n := reg.Asked("PATCH", "/"); n != 0 {
				t.Errorf("%d blobs were sent again", n)
			}
		})
	}
}

func writeDockerConfig(t *testing.T, home, host string) {
	t.Helper()
	text := `{"auths":{"` + host + `":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("user:secret")) + `"}}}`
	if err := os.WriteFile(filepath.Join(home, "config.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPushFails holds what is said when a registry refuses or goes, and when a layer cannot be read; and that no password is.
func TestPushFails(t *testing.T) {
	gone := func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method != http.MethodPatch {
			return false
		}
		_, _ = io.CopyN(io.Discard, r.Body, 1<<19)
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			c.Close()
		}
		return true
	}
	for name, c := range map[string]struct {
		spoil  func(http.ResponseWriter, *http.Request, http.Handler) bool
		change func(*Push)
		want   error
		says   string
	}{
		"wrong password": {change: func(p *Push) { p.Auth.Password = "guessed" }, want: errPushDenied, says: "it answers 401"},
		"may not write": {spoil: func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if r.Method != http.MethodPost {
				return false
			}
			http.Error(w, `{"errors":[{"code":"DENIED","message":"read only"}]}`, http.StatusForbidden)
			return true
		}, want: errPushDenied, says: "DENIED: read only"},
		"gone half way": {spoil: gone, want: errPushBroken, says: "layers that it has whole are not sent again"},
		"layer is lost": {change: func(p *Push) {
			p.Open = func(context.Context, string) (io.ReadCloser, error) { return nil, errLost }
		}, want: errLost, says: "read layer sha256:"},
		"layer breaks": {change: func(p *Push) {
			p.Open = func(context.Context, string) (io.ReadCloser, error) { return io.NopCloser(brokenReader{}), nil }
		}, want: errBrokenReader, says: "read a layer: "},
		"no tag": {change: func(p *Push) { p.To.Tag = "" }, says: "give a tag in a registry"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := registrytest.New(t, registrytest.Basic)
			p := pushOf(t, reg, registrytest.Noise(1, 4<<20))
			reg.Spoil(c.spoil)
			if c.change != nil {
				c.change(&p)
			}
			_, err := (Config{RootCAs: reg.CAs()}).Push(t.Context(), p)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "push to ") ||
				strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "guessed") {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("registry is nowhere", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.None)
		p := pushOf(t, reg, "x")
		reg.Close()
		if _, err := (Config{RootCAs: reg.CAs()}).Push(t.Context(), p); err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("not trusted", func(t *testing.T) {
		p := pushOf(t, registrytest.New(t, registrytest.None), "x")
		if _, err := (Config{}).Push(t.Context(), p); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("got %v", err)
		}
	})
}

var errLost = errors.New("there is no such layer")

var errBrokenReader = errors.New("the daemon is gone")

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBrokenReader }

// pushOf is a push of an image that works.
func pushOf(t *testing.T, reg *registrytest.Registry, texts ...string) Push {
	t.Helper()
	var tars [][]byte
	for _, text := range texts {
		tars = append(tars, registrytest.Tar(t, "file="+text))
	}
	img, blobs := registrytest.Image(t, v1.Config{Cmd: []string{"run"}}, tars...), map[string]v1.Layer{}
	p := Push{To: reg.Ref("team/app:1"), Auth: Auth{Username: "user", Password: "secret"}, Open: func(_ context.Context, digest string) (io.ReadCloser, error) {
		return blobs[digest].Compressed()
	}}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	p.Manifest, err = img.RawManifest()
	must(err)
	p.Config, err = img.RawConfigFile()
	must(err)
	p.Digest = oci.Digest(p.Manifest)
	layers, err := img.Layers()
	must(err)
	for _, l := range layers {
		digest, err := l.Digest()
		must(err)
		diffID, err := l.DiffID()
		must(err)
		size, err := l.Size()
		must(err)
		kind, err := l.MediaType()
		must(err)
		blobs[digest.String()] = l
		p.Layers = append(p.Layers, Layer{Digest: digest.String(), DiffID: diffID.String(), MediaType: string(kind), Bytes: size})
	}
	return p
}
