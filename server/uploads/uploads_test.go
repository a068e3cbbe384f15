package uploads

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cupola/store/blob"
)

type entry struct {
	name, content string
	mode          fs.FileMode
}

func zipOf(t testing.TB, entries ...entry) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "a.zip"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	w := zip.NewWriter(f)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(e.mode)
		to, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(to, e.content)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return f
}

// temp copies a file into a store's.
func temp(t testing.TB, blobs *blob.Store, f *os.File) *blob.Temp {
	t.Helper()
	to, err := blobs.Temp()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(to.Discard)
	if _, err := io.Copy(to, io.NewSectionReader(f, 0, 1<<40)); err != nil {
		t.Fatal(err)
	}
	return to
}

// uploaded is zipOf as the body of an upload.
func uploaded(t testing.TB, blobs *blob.Store, entries ...entry) *blob.Temp {
	t.Helper()
	return temp(t, blobs, zipOf(t, entries...))
}

func openBlobs(t testing.TB) (*blob.Store, string) {
	t.Helper()
	dir := t.TempDir()
	b, err := blob.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return b, dir
}

func files(t testing.TB, dir string) (names []string) {
	t.Helper()
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, p)
		}
		return err
	})
	return names
}

func TestHostileUploadsAreRefusedAndLeaveNothing(t *testing.T) {
	small := Limits{Entries: 10, Bytes: 1 << 20, Ratio: 1100}
	bomb := strings.Repeat("\x00", 2<<20)
	var many []entry
	for i := range 11 {
		many = append(many, entry{fmt.Sprint("f", i), "", 0o644})
	}
	for _, c := range []struct {
		name    string
		limits  Limits
		entries []entry
		want    string
	}{
		{"absolute path", small, []entry{{"/etc/passwd", "x", 0o644}}, "/etc/passwd: is an absolute path"},
		{"dots", small, []entry{{"a/../../b", "x", 0o644}}, "leads out of the app's directory"},
		{"backslash", small, []entry{{`..\b`, "x", 0o644}}, "is not a valid path"},
		{"link out", small, []entry{{"a/l", "../../x", 0o777 | fs.ModeSymlink}}, "links to \"../../x\", which is outside"},
		{"absolute link", small, []entry{{"l", "/etc", 0o777 | fs.ModeSymlink}}, "outside the app's directory"},
		{"link out by way of a link", small, []entry{{"a/b/up", "../..", 0o777 | fs.ModeSymlink}, {"l", "a/b/up/../x", 0o777 | fs.ModeSymlink}}, "outside the app's directory"},
		{"file through a link", small, []entry{{"l", "d", 0o777 | fs.ModeSymlink}, {"l/f", "x", 0o644}}, "which is not a directory"},
		{"device", small, []entry{{"null", "", fs.ModeDevice | fs.ModeCharDevice | 0o666}}, "is neither a file, a directory nor a symbolic link"},
		{"fifo", small, []entry{{"pipe", "", fs.ModeNamedPipe | 0o666}}, "is neither a file"},
		{"twice", small, []entry{{"a", "x", 0o644}, {"./a", "y", 0o644}}, "is there twice"},
		{"bomb", small, []entry{{"bomb", bomb, 0o644}}, "unpacks to more than 1048576 bytes"},
		{"too many", small, many, "has more than 11 entries"},
	} {
		t.Run(c.name, func(t *testing.T) {
			blobs, dir := openBlobs(t)
			// What comes before is worth remembering, and is not.
			c.entries = append([]entry{{"before", strings.Repeat("x", minPooled), 0o644}}, c.entries...)
			c.limits.Entries++
			_, err := Pack(context.Background(), blobs, Upload{Zip: uploaded(t, blobs, c.entries...), Limits: c.limits})
			if !IsInvalid(err) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want %s", err, c.want)
			}
			if left := files(t, dir); len(left) != 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}

func TestWrongSizesAreRefused(t *testing.T) {
	f := zipOf(t, entry{"a", strings.Repeat("abc", 1000), 0o644})
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	// The uncompressed size stands at offset 24 of the directory's entry.
	i := bytes.LastIndex(data, []byte("PK\x01\x02"))
	data[i+24]++
	name := filepath.Join(t.TempDir(), "wrong.zip")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	wrong, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer wrong.Close()
	blobs, dir := openBlobs(t)
	if _, err := Pack(context.Background(), blobs, Upload{Zip: temp(t, blobs, wrong)}); !IsInvalid(err) {
		t.Errorf("got %v; want invalid", err)
	}
	if left := files(t, dir); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

func TestKnownFilesAreMerged(t *testing.T) {
	blobs, dir := openBlobs(t)
	big := strings.Repeat("0123456789abcdef", 8<<10)
	sum := sha1.Sum([]byte(big))
	sha := hex.EncodeToString(sum[:])
	first, err := Pack(context.Background(), blobs, Upload{Zip: uploaded(t, blobs, entry{"big", big, 0o755}, entry{"small", "s", 0o644}, entry{"l", "big", 0o777 | fs.ModeSymlink})})
	if err != nil {
		t.Fatal(err)
	}
	if want := []Pooling{{sha, int64(len(big)), "big"}}; !slices.Equal(first.Pool, want) {
		t.Fatalf("got %+v; want %+v", first.Pool, want)
	}
	if all := files(t, dir); len(all) != 1 {
		t.Errorf("got blobs %v; want the package alone", all)
	}
	own, err := blobs.Put(context.Background(), strings.NewReader(big))
	if err != nil {
		t.Fatal(err)
	}
	for name, known := range map[string]Known{"in a package": {first.Digest, "big"}, "a blob of an earlier version": {Digest: own.Digest}} {
		t.Run(name, func(t *testing.T) {
			second, err := Pack(context.Background(), blobs, Upload{Zip: uploaded(t, blobs, entry{"new", "n", 0o600}),
				Pool:      func(sha1 string, _ int64) (Known, bool) { return known, sha1 == sha },
				Resources: []Resource{{Path: "dir/big", Mode: 0o755, SHA1: sha, Size: int64(len(big))}}})
			if err != nil {
				t.Fatal(err)
			}
			if want := []Pooling{{sha, int64(len(big)), "dir/big"}}; !slices.Equal(second.Pool, want) {
				t.Errorf("got %+v; want %+v", second.Pool, want)
			}
			checkMerged(t, blobs, second.Digest, big)
		})
	}
}

// checkMerged checks that a package has the file new, and dir/big with its content and mode.
func checkMerged(t *testing.T, blobs *blob.Store, digest, big string) {
	t.Helper()
	name, err := blobs.Path(digest)
	if err != nil {
		t.Fatal(err)
	}
	r, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := fs.ReadFile(r, "dir/big"); err != nil || string(got) != big {
		t.Errorf("dir/big: got %d bytes, %v", len(got), err)
	}
	info, err := fs.Stat(r, "dir/big")
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("got %v, %v; want mode 0755", info, err)
	}
	if _, err := fs.Stat(r, "new"); err != nil {
		t.Error(err)
	}
}

// A package that had the file may be gone by the time of the upload.
func TestGoneResourceIsRefused(t *testing.T) {
	blobs, _ := openBlobs(t)
	b, err := Pack(context.Background(), blobs, Upload{Zip: uploaded(t, blobs, entry{"a", "x", 0o644})})
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range []Known{{strings.Repeat("a", 64), "a"}, {b.Digest, "b"}, {Digest: strings.Repeat("a", 64)}} {
		_, err := Pack(context.Background(), blobs, Upload{Resources: []Resource{{Path: "a", SHA1: "x", Size: 70000}}, Pool: func(string, int64) (Known, bool) { return known, true }})
		if !IsInvalid(err) || !strings.Contains(err.Error(), "is not known here any longer: push again") {
			t.Errorf("%+v: got %v; want that it is not known any longer", known, err)
		}
		if lost, _ := Lost(err); lost != known.Digest {
			t.Errorf("%+v: got %q as lost", known, lost)
		}
	}
}

func TestUnknownResourceIsRefused(t *testing.T) {
	blobs, _ := openBlobs(t)
	_, err := Pack(context.Background(), blobs, Upload{Resources: []Resource{{Path: "a", SHA1: "x", Size: 70000}},
		Pool: func(string, int64) (Known, bool) { return Known{}, false }})
	var e *refusal
	if !errors.As(err, &e) || e.Entry != "a" {
		t.Errorf("got %v; want it to name a", err)
	}
}

func TestLinksWithinAreTaken(t *testing.T) {
	blobs, _ := openBlobs(t)
	link := fs.ModeSymlink | 0o777
	if _, err := Pack(context.Background(), blobs, Upload{Zip: uploaded(t, blobs, entry{"a/b/up", "../..", link}, entry{"l", "a/b/up/c", link}, entry{"dangling", "no/such", link},
		entry{"loop", "loop", link})}); err != nil {
		t.Error(err)
	}
}

// What is known counts as much as what is sent: else a small upload could name
// one large file any number of times.
func TestKnownFilesCount(t *testing.T) {
	blobs, _ := openBlobs(t)
	b, err := blobs.Put(context.Background(), strings.NewReader(strings.Repeat("x", 70000)))
	if err != nil {
		t.Fatal(err)
	}
	u := Upload{Limits: Limits{Entries: 100, Bytes: 200000, Ratio: 1100}, Pool: func(string, int64) (Known, bool) { return Known{Digest: b.Digest}, true }}
	for i := range 3 {
		u.Resources = append(u.Resources, Resource{Path: fmt.Sprint("f", i), Mode: 0o644, SHA1: "x", Size: 70000})
	}
	if _, err := Pack(context.Background(), blobs, u); !IsInvalid(err) || !strings.Contains(err.Error(), "unpacks to more than 200000 bytes") {
		t.Errorf("got %v; want too large", err)
	}
}

// A zip says itself how large its directory is, and where; what is read into
// memory is bounded whatever it says.
func TestLargeDirectoriesAreNotRead(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "a.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := zip.NewWriter(f)
	for i := range 1000 {
		if _, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprint(i), Extra: make([]byte, 65000)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	// The size of the directory stands 10 bytes before the end.
	if _, err := f.WriteAt([]byte{46, 0, 0, 0}, info.Size()-10); err != nil {
		t.Fatal(err)
	}
	if _, err := openZip(f); !IsInvalid(err) || !strings.Contains(err.Error(), "has too many entries") {
		t.Errorf("got %v; want too many entries", err)
	}
}

func FuzzPack(f *testing.F) {
	z := zipOf(f, entry{"a", "b", 0o644}, entry{"l", "a", 0o777 | fs.ModeSymlink})
	data, _ := os.ReadFile(z.Name())
	f.Add(data)
	blobs, _ := openBlobs(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		name := filepath.Join(t.TempDir(), "z")
		os.WriteFile(name, data, 0o600)
		in, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if _, err := Pack(context.Background(), blobs, Upload{Zip: temp(t, blobs, in), Limits: Limits{Entries: 100, Bytes: 1 << 20, Ratio: 1100}}); err != nil && !IsInvalid(err) {
			t.Errorf("got %v; want it valid or invalid", err)
		}
	})
}

// TestDirectoryIsCounted reads a directory in pieces that cut its entries
// anywhere.
func TestDirectoryIsCounted(t *testing.T) {
	text := strings.Repeat("x"+directoryEntry+"yz", 100)
	for size := 1; size < 20; size++ {
		b := &boundedReader{r: strings.NewReader(text), left: 1 << 20, entries: 100}
		p := make([]byte, size)
		for off := 0; off < len(text); off += size {
			if _, err := b.ReadAt(p, int64(off)); err != nil && err != io.EOF {
				t.Fatalf("pieces of %d: %v", size, err)
			}
		}
		if b.entries != 0 {
			t.Errorf("pieces of %d: %d of 100 were not counted", size, b.entries)
		}
		b.entries = 0
		if _, err := b.ReadAt(make([]byte, 50), 0); !IsInvalid(err) {
			t.Errorf("got %v; want invalid", err)
		}
	}
}

func TestLateFaultKeepsNothing(t *testing.T) {
	f := zipOf(t, entry{"big", strings.Repeat("0123456789abcdef", 8<<10), 0o755}, entry{"last", strings.Repeat("abc", 1000), 0o644})
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	data[bytes.LastIndex(data, []byte(directoryEntry))+16]++ // its checksum
	if err := os.WriteFile(f.Name(), data, 0o600); err != nil {
		t.Fatal(err)
	}
	blobs, dir := openBlobs(t)
	if _, err := Pack(context.Background(), blobs, Upload{Zip: temp(t, blobs, f)}); !IsInvalid(err) {
		t.Errorf("got %v; want invalid", err)
	}
	if left := files(t, dir); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}
