package uploads

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func tgz(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, h := range headers {
		if h.Typeflag == 0 {
			h.Typeflag, h.Size = tar.TypeReg, 1
		}
		h.Mode = 0o644
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			w.Write([]byte("x"))
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	z.Close()
	return b.Bytes()
}

func openBytes(t testing.TB, data []byte) *os.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestDroplet(t *testing.T) {
	file := tar.Header{Name: "./app/run"}
	for _, c := range []struct {
		name string
		data []byte
		want string // part of the error, "" for none
	}{
		{"plain", tgz(t, tar.Header{Name: "./", Typeflag: tar.TypeDir}, file, tar.Header{Name: "./app/l", Typeflag: tar.TypeSymlink, Linkname: "/home/vcap/deps/0"},
			tar.Header{Name: "./app/hard", Typeflag: tar.TypeLink, Linkname: "./app/run"}), ""},
		{"no gzip", []byte("x"), "is not a valid tgz file"},
		{"cut", tgz(t, file)[:40], "is not a valid tgz file"},
		{"empty", tgz(t), "holds no files"},
		{"dots", tgz(t, file, tar.Header{Name: "../x"}), "../x: leads out"},
		{"absolute", tgz(t, tar.Header{Name: "/etc/passwd"}), "/etc/passwd: is an absolute path"},
		{"hard link out", tgz(t, tar.Header{Name: "l", Typeflag: tar.TypeLink, Linkname: "../../etc/shadow"}), "leads out"},
		{"through a link", tgz(t, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, tar.Header{Name: "l/x"}), "is not a directory"},
		{"device", tgz(t, tar.Header{Name: "null", Typeflag: tar.TypeChar}), "is neither a file"},
		{"fifo", tgz(t, tar.Header{Name: "p", Typeflag: tar.TypeFifo}), "is neither a file"},
	} {
		err := Droplet(context.Background(), openBytes(t, c.data))
		if c.want == "" && err != nil || c.want != "" && (!IsInvalid(err) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v; want %q", c.name, err, c.want)
		}
	}
}

func FuzzDroplet(f *testing.F) {
	f.Add(tgz(f, tar.Header{Name: "a"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := Droplet(context.Background(), openBytes(t, data)); err != nil && !IsInvalid(err) {
			t.Errorf("got %v; want it valid or invalid", err)
		}
	})
}
