package debian

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadAr(t *testing.T) {
	raw := arFile("debian-binary", []byte("2.0\n"), "odd", []byte("x"), "control.tar/", []byte("abc"))
	members, err := readAr(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range members {
		content, err := io.ReadAll(m.data)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, m.name+"="+string(content))
	}
	if got, want := strings.Join(got, ","), "debian-binary=2.0\n,odd=x,control.tar=abc"; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
	for what, raw := range map[string][]byte{
		"no ar archive":         []byte("PK\x03\x04"),
		"header cut short":      raw[:len(arMagic)+30],
		"cut short: 3 of 4":     raw[:len(arMagic)+arHeaderSize+3],
		"no end mark":           bytes.Replace(raw, []byte("`\n"), []byte("``"), 1),
		"no name and size":      bytes.Replace(raw, []byte("4         `"), []byte("-4        `"), 1),
		"more than 16 members":  append([]byte(arMagic), bytes.Repeat(arFile("x", []byte{})[len(arMagic):], 17)...),
		"control.tar cut short": raw[:len(raw)-2],
	} {
		if _, err := readAr(bytes.NewReader(raw), int64(len(raw))); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v; want %q", err, what)
		}
	}
}

func FuzzReadAr(f *testing.F) {
	f.Add(arFile("debian-binary", []byte("2.0\n"), "odd", []byte("x")))
	f.Fuzz(func(t *testing.T, raw []byte) {
		members, err := readAr(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			return
		}
		for _, m := range members {
			if n, err := io.Copy(io.Discard, m.data); err != nil || n != m.data.Size() {
				t.Errorf("%s: got %d of %d bytes, %v", m.name, n, m.data.Size(), err)
			}
		}
	})
}

func TestOpenDebRefuses(t *testing.T) {
	control := compressed(t, ".gz", tarFile(t, []tar.Header{file("./control", 0o644)}, map[string]string{"./control": "Package: x\n"}))
	empty := tarFile(t, nil, nil)
	for want, raw := range map[string][]byte{
		"no ar archive":     []byte("hello"),
		"no package":        arFile("debian-binary", []byte("2.0\n"), "control.tar.gz", control),
		"it needs":          arFile("control.tar.gz", control, "data.tar", empty, "debian-binary", []byte("2.0\n")),
		"no control file":   arFile("debian-binary", []byte("2.0\n"), "control.tar", empty, "data.tar", empty),
		"control.tar.gz":    arFile("debian-binary", []byte("2.0\n"), "control.tar.gz", []byte("junk"), "data.tar", empty),
		"compressed as .bz": arFile("debian-binary", []byte("2.0\n"), "control.tar.bz", empty, "data.tar", empty),
	} {
		path := filepath.Join(t.TempDir(), "x.deb")
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		if d, err := openDeb(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, %v; want %q", d, err, want)
		}
	}
}

func TestDecompress(t *testing.T) {
	want := bytes.Repeat([]byte("stack"), 100_000)
	for _, ext := range []string{"", ".gz", ".xz", ".zst"} {
		r, err := decompress("data.tar"+ext, bytes.NewReader(compressed(t, ext, want)))
		if ext == "" {
			r, err = decompress("data", bytes.NewReader(want))
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q: got %d bytes, %v; want %d", ext, len(got), err, len(want))
		}
		r.Close()
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(tarFile(f, []tar.Header{dir("./a", 0o755), file("./a/b", 0o644), symlink("./a/c", "b"), hardlink("./d", "./a/c")}, nil))
	f.Add(tarFile(f, []tar.Header{symlink("./a", "/"), file("./a/../b", 0o644)}, nil))
	f.Fuzz(func(t *testing.T, raw []byte) {
		parent := t.TempDir()
		stack := filepath.Join(parent, "stack")
		if err := os.Mkdir(stack, 0o755); err != nil {
			t.Fatal(err)
		}
		tr, err := newTree(stack, false, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.close()
		u := &unpacker{tree: tr, owner: "x", yields: func(string) (string, error) { return "x", nil }}
		if err := u.unpack(bytes.NewReader(raw)); err != nil {
			return
		}
		if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
			t.Errorf("got %v, %v beside the tree", entries, err)
		}
	})
}

func TestIsDocumentation(t *testing.T) {
	for name, want := range map[string]bool{
		"usr/share/doc/x/changelog.gz": true, "usr/share/doc/x/copyright": false, "usr/share/man/man1/x.1": true, "usr/share/locale/de/LC_MESSAGES/x.mo": true,
		"usr/share/locale/locale.alias": false, "usr/share/docs/x": false, "usr/share/doc/x/examples/y": true,
	} {
		if got := isDocumentation(name, tar.TypeReg); got != want {
			t.Errorf("%s: got %v; want %v", name, got, want)
		}
	}
	if isDocumentation("usr/share/doc/x", tar.TypeDir) || isDocumentation("usr/share/doc/x", tar.TypeSymlink) || !isDocumentation("usr/share/doc/x/y", tar.TypeDir) {
		t.Error("want a package's own directory or link kept, and what is below it not")
	}
}
