package unpack

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// item is one entry of an archive to be built. kind is a tar type flag; mode 0 means 0644 or 0755.
type item struct {
	name, body, link string
	kind             byte
	mode             int64
}

func tarOf(t testing.TB, items ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, it := range items {
		h := &tar.Header{Name: it.name, Linkname: it.link, Typeflag: it.kind, Mode: it.mode, Size: int64(len(it.body)), Format: tar.FormatPAX}
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Mode == 0 {
			h.Mode = 0o644
			if it.kind == tar.TypeDir {
				h.Mode = 0o755
			}
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, it.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipOf(t testing.TB, items ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, it := range items {
		h := &zip.FileHeader{Name: it.name, Method: zip.Deflate}
		body := it.body
		switch it.kind {
		case tar.TypeSymlink:
			h.SetMode(fs.ModeSymlink | 0o777)
			body = it.link
		case tar.TypeChar:
			h.SetMode(fs.ModeDevice | fs.ModeCharDevice | 0o666)
		case tar.TypeFifo:
			h.SetMode(fs.ModeNamedPipe | 0o666)
		default:
			h.SetMode(fs.FileMode(it.mode))
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gz(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func section(b []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))
}

func into(t testing.TB, dir string, archive []byte, o Options) (Stats, error) {
	t.Helper()
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	return Into(t.Context(), d, section(archive), o)
}

// TestManyOpaqueMarks unpacks a layer whose every second entry hides all below again, in one directory and in one of its
// children's after the other: CVE-2026-95838. Each mark that walked the tree would take minutes together.
func TestManyOpaqueMarks(t *testing.T) {
	const files, deep = 12_000, 100
	var items []item
	chain := strings.Repeat("d/", deep)
	for n := range files {
		items = append(items, item{name: fmt.Sprintf("%s%d", chain, n)})
	}
	for n := range deep {
		items = append(items, item{name: chain[:2*(deep-n)] + ".wh..wh..opq"})
	}
	for range files {
		items = append(items, item{name: chain + ".wh..wh..opq"}, item{name: ".wh..wh..opq"})
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "lower"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := Into(ctx, d, section(tarOf(t, items...)), Options{Image: true}); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || entries[0].Name() != "d" {
		t.Errorf("got %v, %v; want the lower layer's file hidden", entries, err)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, chain)); err != nil || len(entries) != files {
		t.Errorf("got %d files, %v; want %d", len(entries), err, files)
	}
}

// tree describes what lies below dir, one line each.
func tree(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		info, err := e.Info()
		if err != nil {
			return err
		}
		switch {
		case e.IsDir():
			out = append(out, fmt.Sprintf("%s/ %o", rel, info.Mode().Perm()))
		case e.Type() == fs.ModeSymlink:
			to, _ := os.Readlink(name)
			out = append(out, rel+" -> "+to)
		default:
			b, _ := os.ReadFile(name)
			mode := fmt.Sprintf("%o", info.Mode().Perm())
			if info.Mode()&fs.ModeSetuid != 0 {
				mode = "s" + mode
			}
			out = append(out, fmt.Sprintf("%s %s %q", rel, mode, b))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

func TestIntoTar(t *testing.T) {
	t.Parallel()
	archive := tarOf(t,
		item{name: "./", kind: tar.TypeDir, mode: 0o700},
		item{name: "./app/", kind: tar.TypeDir, mode: 0o555},
		item{name: "./app/run", body: "one", mode: 0o4755},
		item{name: "./app/same", link: "./app/run", kind: tar.TypeLink},
		item{name: "./app/abs", link: "/usr/bin/python3", kind: tar.TypeSymlink},
		item{name: "deep/er/file", body: "two"},
		item{name: "deep/er/file", body: "three"},
	)
	want := []string{
		"app/ 555", `app/abs -> /usr/bin/python3`, `app/run 755 "one"`, `app/same 755 "one"`,
		"deep/ 755", "deep/er/ 755", `deep/er/file 644 "three"`,
	}
	var zst bytes.Buffer
	zw, err := zstd.NewWriter(&zst)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := zw.Write(archive); err != nil || zw.Close() != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"plain": archive, "gzip": gz(t, archive), "zstd": zst.Bytes()} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Cleanup(func() { os.Chmod(filepath.Join(dir, "app"), 0o755) }) // else others than root cannot clean up
			stats, err := into(t, dir, b, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, tree(t, dir)); d != "" {
				t.Error(d)
			}
			if (stats != Stats{Entries: 7, Bytes: 11}) {
				t.Errorf("got %+v; want 7 entries of 11 bytes", stats)
			}
		})
	}
}

// xzTar is a tar of one file f holding hello, compressed by xz -9e.
const xzTar = "/Td6WFoAAATm1rRGAgAhARwAAAAQz1jM4Cf/AFRdADMAM1AYaImDAdzibiEFVzU4Vk1nwQHMQvG/iiLIxUWKgogBjeftrRAIxrTS" +
	"i3+w6Pt8lQsUdD0ys7oqjydO4Fn1CZZaj/6G4zkYWoKqJS+YUYKBAADyDOUd4xW0oQABcIBQAAAALGacsrHEZ/sCAAAAAARZWg=="

func TestIntoXZ(t *testing.T) {
	t.Parallel()
	b, err := base64.StdEncoding.DecodeString(xzTar)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := into(t, dir, b, Options{}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{`f 644 "hello"`}, tree(t, dir)); d != "" {
		t.Error(d)
	}
}

func TestIntoZip(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	archive := zipOf(t, item{name: "a/", mode: int64(0o755)}, item{name: "a/run", body: "x", mode: 0o777},
		item{name: "none", body: "y"}, item{name: "l", link: "a/run", kind: tar.TypeSymlink})
	var last int64
	if _, err := into(t, dir, archive, Options{Progress: func(n int64) { last = n }}); err != nil {
		t.Fatal(err)
	}
	want := []string{"a/ 755", `a/run 755 "x"`, "l -> a/run", `none 644 "y"`}
	if d := cmp.Diff(want, tree(t, dir)); d != "" {
		t.Error(d)
	}
	if last == 0 {
		t.Error("no progress was reported")
	}
}

// hostile are archives that an app's upload must never get through.
var hostile = []struct {
	name   string
	items  []item
	reason string
}{
	{"climbs", []item{{name: "../evil", body: "x"}}, "climbs out"},
	{"climbs inside", []item{{name: "a/../../evil", body: "x"}}, "climbs out"},
	{"absolute", []item{{name: "/etc/evil", body: "x"}}, "absolute"},
	{"through a link", []item{{name: "d", link: "/tmp", kind: tar.TypeSymlink}, {name: "d/evil", body: "x"}}, `symbolic link "d"`},
	{"through a link inside", []item{{name: "d", link: "e", kind: tar.TypeSymlink}, {name: "e/f", body: "x"}, {name: "d/evil", body: "x"}}, `symbolic link "d"`},
	{"through a deep link", []item{{name: "a/b/c", link: "../../..", kind: tar.TypeSymlink}, {name: "a/b/c/d/evil", body: "x"}}, `symbolic link "a/b/c"`},
	{"link to a root", []item{{name: ".", link: "/etc", kind: tar.TypeSymlink}}, "root"},
	{"device", []item{{name: "null", kind: tar.TypeChar}}, "device"},
	{"fifo", []item{{name: "pipe", kind: tar.TypeFifo}}, "device"},
	{"NUL", []item{{name: "a\x00b", body: "x"}}, "NUL"},
	{"long part", []item{{name: strings.Repeat("n", 256), body: "x"}}, "too long"},
	{"long name", []item{{name: strings.Repeat("d/", 2500) + "f", body: "x"}}, "too long"},
	{"file over directory", []item{{name: "d/f", body: "x"}, {name: "d", body: "x"}}, "contradicts"},
	{"file as directory", []item{{name: "f", body: "x"}, {name: "f/g", body: "x"}}, "contradicts"},
}

func TestHostile(t *testing.T) {
	t.Parallel()
	for _, c := range hostile {
		for _, kind := range []string{"tar", "zip"} {
			t.Run(kind+" "+c.name, func(t *testing.T) {
				if kind == "tar" && c.name == "NUL" {
					t.Skip("a tar cannot say it")
				}
				archive := tarOrZip(t, kind, c.items)
				up := t.TempDir()
				dir := filepath.Join(up, "in")
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				_, err := into(t, dir, archive, Options{})
				wantEntryError(t, err, c.reason)
				if left := tree(t, up); slices.ContainsFunc(left, func(s string) bool { return strings.HasPrefix(s, "evil") }) {
					t.Errorf("got %q outside of the directory", left)
				}
				if c.reason == "contradicts" {
					return // shows on disk alone
				}
				_, err = check(t.Context(), section(archive), Options{})
				wantEntryError(t, err, c.reason)
			})
		}
	}
}

func tarOrZip(t *testing.T, kind string, items []item) []byte {
	if kind == "tar" {
		return gz(t, tarOf(t, items...))
	}
	return zipOf(t, items...)
}

func wantEntryError(t *testing.T, err error, reason string) {
	t.Helper()
	if _, ok := errors.AsType[*EntryError](err); !ok || !strings.Contains(err.Error(), reason) {
		t.Errorf("got %v; want an EntryError with %q", err, reason)
	}
}

func TestHostileLinks(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		items  []item
		reason string
	}{
		{"hard link out", []item{{name: "l", link: "../../etc/passwd", kind: tar.TypeLink}}, "bad target"},
		{"hard link absolute", []item{{name: "l", link: "/etc/passwd", kind: tar.TypeLink}}, "bad target"},
		{"hard link to nothing", []item{{name: "l", link: "none", kind: tar.TypeLink}}, "not there"},
		{"hard link to a directory", []item{{name: "d", kind: tar.TypeDir}, {name: "l", link: "d", kind: tar.TypeLink}}, "not there"},
		{"hard link through a link", []item{{name: "d", link: "/etc", kind: tar.TypeSymlink}, {name: "l", link: "d/passwd", kind: tar.TypeLink}}, `symbolic link "d"`},
		{"through a hard link to a link", []item{{name: "d", link: "/tmp", kind: tar.TypeSymlink}, {name: "e", link: "d", kind: tar.TypeLink}, {name: "e/evil", body: "x"}}, `symbolic link "e"`},
		{"to itself", []item{{name: "l", body: "x"}, {name: "l", link: "./l", kind: tar.TypeLink}}, "itself"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := into(t, t.TempDir(), tarOf(t, c.items...), Options{})
			wantEntryError(t, err, c.reason)
		})
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	many := make([]item, 20)
	for i := range many {
		many[i] = item{name: fmt.Sprint(i), body: "0123456789"}
	}
	cases := []struct {
		name   string
		limits Limits
		reason string
	}{
		{"entries", Limits{Entries: 19}, "more than 19 entries"},
		{"bytes", Limits{Bytes: 199}, "more than 199 bytes"},
		{"enough", Limits{Entries: 20, Bytes: 200}, ""},
	}
	for _, c := range cases {
		for _, kind := range []string{"tar", "zip"} {
			_, err := into(t, t.TempDir(), tarOrZip(t, kind, many), Options{Limits: c.limits})
			if c.reason != "" {
				wantEntryError(t, err, c.reason)
			} else if err != nil {
				t.Error(err)
			}
		}
	}
}

// zeros is an endless file of no content.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestBomb(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("inflates 256 MiB")
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create("bomb")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(f, zeros{}, 300<<20); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	_, err = check(t.Context(), section(b.Bytes()), Options{})
	wantEntryError(t, err, "times its size")
}

func TestDamaged(t *testing.T) {
	t.Parallel()
	body := item{name: "f", body: strings.Repeat("some text that does not compress to nothing 0123456789", 500)}
	whole := gz(t, tarOf(t, body))
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-6] ^= 1 // in the checksum
	zipped := zipOf(t, body)
	zflip := bytes.Clone(zipped)
	zflip[60] ^= 0xff
	wrongSize := bytes.Clone(zipped)
	size := bytes.LastIndex(wrongSize, []byte("PK\x01\x02")) + 24 // the unpacked size in the directory
	wrongSize[size]++
	for name, b := range map[string][]byte{
		"cut": whole[:len(whole)/2], "checksum": flipped, "no tar": []byte(strings.Repeat("this is not a tar\n", 100)),
		"cut zip": zipped[:len(zipped)-30], "flipped zip": zflip, "wrong size": wrongSize, "bad xz": []byte("\xfd7zXZ\x00garbage that is none"),
		"bad gzip": {0x1f, 0x8b, 0, 0, 0, 0}, "bad zstd": append([]byte{0x28, 0xb5, 0x2f, 0xfd}, "garbage"...), "PK alone": []byte("PK\x03\x04"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := check(t.Context(), section(b), Options{})
			if _, ok := errors.AsType[*EntryError](err); !ok {
				t.Errorf("got %v (%T); want an EntryError", err, err)
			}
		})
	}
}

func TestImage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	layers := [][]byte{
		tarOf(t, item{name: "usr/lib/old", body: "1"}, item{name: "lib", link: "usr/lib", kind: tar.TypeSymlink},
			item{name: "/etc/abs", link: "/usr/lib", kind: tar.TypeSymlink}, item{name: "gone/x", body: "1"}, item{name: "opq/low", body: "1"},
			item{name: "dev/null", kind: tar.TypeChar}, item{name: "sub", kind: tar.TypeDir}, item{name: "sub/y", body: "1"}),
		tarOf(t, item{name: "lib/new", body: "2"}, item{name: "etc/abs/viaabs", body: "2"}, item{name: ".wh.gone"},
			item{name: "opq/own/kept", body: "2"}, item{name: "opq/.wh..wh..opq"}, item{name: "opq/after", body: "2"},
			item{name: "bin/su", body: "2", mode: 0o4755}, item{name: "hard", link: "/usr/lib/old", kind: tar.TypeLink},
			item{name: "sub", body: "now a file"}),
	}
	for _, l := range layers {
		if _, err := into(t, dir, gz(t, l), Options{Image: true}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"bin/ 755", `bin/su s755 "2"`, "dev/ 755", "etc/ 755", "etc/abs -> /usr/lib", `hard 644 "1"`, "lib -> usr/lib", "opq/ 755",
		`opq/after 644 "2"`, "opq/own/ 755", `opq/own/kept 644 "2"`, `sub 644 "now a file"`,
		"usr/ 755", "usr/lib/ 755", `usr/lib/new 644 "2"`, `usr/lib/old 644 "1"`, `usr/lib/viaabs 644 "2"`,
	}
	slices.Sort(want)
	want = slices.DeleteFunc(want, func(s string) bool { return s == "dev/ 755" }) // devices make no directories
	if d := cmp.Diff(want, tree(t, dir)); d != "" {
		t.Error(d)
	}
}

func TestImageStaysInside(t *testing.T) {
	t.Parallel()
	up := t.TempDir()
	dir := filepath.Join(up, "in")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	archive := tarOf(t, item{name: "up", link: "../../..", kind: tar.TypeSymlink}, item{name: "up/evil", body: "x"},
		item{name: "abs", link: up, kind: tar.TypeSymlink}, item{name: "evil2dir/.wh.x"}, item{name: "up/.wh.in"})
	if _, err := into(t, dir, archive, Options{Image: true}); err != nil {
		t.Fatal(err)
	}
	want := []string{"in/ 755", "in/abs -> " + up, `in/evil 644 "x"`, "in/up -> ../../.."}
	if d := cmp.Diff(want, tree(t, up)); d != "" {
		t.Error(d)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := check(ctx, section(tarOf(t, item{name: "a", body: "x"})), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want context.Canceled", err)
	}
}
