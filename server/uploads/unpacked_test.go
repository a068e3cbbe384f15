package uploads

import (
	"archive/zip"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/rootfs"
	"cupola/rootfs/layer"
	"cupola/rootfs/tree"
	"cupola/runtime/durable"
	"cupola/store/blob"
)

// openUnpacked opens a store of blobs that keeps zips unpacked.
func openUnpacked(t *testing.T) (*blob.Store, *layer.Cache) {
	t.Helper()
	blobs, _ := openBlobs(t)
	roots, err := rootfs.New(rootfs.Config{Dir: t.TempDir(), Unmounted: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := roots.Close(); err != nil {
			t.Error(err)
		}
	})
	blobs.Unpacked = roots.Layers
	return blobs, roots.Layers
}

// noise is content that does not compress.
func noise(seed byte, size int) string {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return string(b)
}

func pack(t *testing.T, blobs *blob.Store, u Upload) *Packed {
	t.Helper()
	p, err := Pack(t.Context(), blobs, u)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestWhatIsStoredUnpacked: files that do not compress. Others take less of the disk in their zip.
func TestWhatIsStoredUnpacked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content  string
		unpacked bool
	}{"noise": {noise(1, 300_000), true}, "text": {strings.Repeat("text ", 60_000), false}, "small": {noise(2, 1000), false}} {
		blobs, layers := openUnpacked(t)
		p := pack(t, blobs, Upload{Zip: uploaded(t, blobs, entry{"dir/file", c.content, 0o644}, entry{"l", "dir/file", 0o777 | fs.ModeSymlink})})
		_, kept := layers.Kept(p.Digest)
		if _, err := blobs.Stat(p.Digest); kept != c.unpacked || (err == nil) == kept {
			t.Errorf("%s: got it unpacked: %t, and a file: %v", name, kept, err)
		}
		f, err := blobs.Open(p.Digest)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r, err := zip.NewReader(f, p.Size)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := fs.ReadFile(r, "dir/file"); err != nil || string(got) != c.content {
			t.Errorf("%s: got %d bytes, %v", name, len(got), err)
		}
	}
}

// TestKnownFilesAreStoredOnce uploads an app again, of which the server has most. What did not change is on the disk once, and an
// app that did not change at all is the same package.
func TestKnownFilesAreStoredOnce(t *testing.T) {
	t.Parallel()
	blobs, layers := openUnpacked(t)
	big := noise(1, 300_000)
	sum := sha1.Sum([]byte(big))
	sha := hex.EncodeToString(sum[:])
	// Clients may spell names as they like.
	first := pack(t, blobs, Upload{Zip: uploaded(t, blobs, entry{"./dir//big", big, 0o755}, entry{"small", "s", 0o644})})
	if want := []Pooling{{sha, int64(len(big)), "./dir//big"}}; !slices.Equal(first.Pool, want) {
		t.Fatalf("got %+v; want %+v", first.Pool, want)
	}
	again := func(path, small string, mode fs.FileMode) *Packed {
		t.Helper()
		return pack(t, blobs, Upload{Zip: uploaded(t, blobs, entry{"small", small, 0o644}), Resources: []Resource{{Path: path, Mode: mode, SHA1: sha, Size: int64(len(big))}},
			Pool: func(string, int64) (Known, bool) { return Known{first.Digest, first.Pool[0].Entry}, true }})
	}
	if p := again("dir/big", "s", 0o755); p.Digest != first.Digest || p.Size != first.Size {
		t.Errorf("the same app is the package %+v; want %+v", p.Blob, first.Blob)
	}
	for _, c := range []struct {
		path   string
		mode   fs.FileMode
		shared bool
	}{{"dir/big", 0o755, true}, {"other/big", 0o755, true}, {"dir/big", 0o644, false}} {
		p := again(c.path, "t", c.mode)
		file := func(digest, name string) fs.FileInfo {
			dir, _ := layers.Kept(digest)
			info, err := os.Stat(filepath.Join(dir, tree.FS, name))
			if err != nil {
				t.Fatal(err)
			}
			return info
		}
		if info := file(p.Digest, c.path); info.Size() != int64(len(big)) || info.Mode() != c.mode || os.SameFile(info, file(first.Digest, "dir/big")) != c.shared {
			t.Errorf("%+v: got %v", c, info)
		}
	}
}

// TestALastPackageIsShared uploads all files of an app again, of which one changed.
func TestALastPackageIsShared(t *testing.T) {
	t.Parallel()
	blobs, layers := openUnpacked(t)
	big := entry{"big", noise(1, 300_000), 0o644}
	first := pack(t, blobs, Upload{Zip: uploaded(t, blobs, big, entry{"small", "s", 0o644}), Last: strings.Repeat("a", 64)})
	second := pack(t, blobs, Upload{Zip: uploaded(t, blobs, big, entry{"small", "t", 0o644}), Last: first.Digest})
	for name, shared := range map[string]bool{"big": true, "small": false} {
		var files []fs.FileInfo
		for _, digest := range []string{first.Digest, second.Digest} {
			dir, _ := layers.Kept(digest)
			info, err := os.Stat(filepath.Join(dir, tree.FS, name))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, info)
		}
		if os.SameFile(files[0], files[1]) != shared {
			t.Errorf("%s: want it shared: %t", name, shared)
		}
	}
}

// TestKnownFilesOfARestoredPackage finds a file in the zip of a package that was unpacked when the file became known.
func TestKnownFilesOfARestoredPackage(t *testing.T) {
	t.Parallel()
	from, _ := openUnpacked(t)
	big := noise(1, 300_000)
	first := pack(t, from, Upload{Zip: uploaded(t, from, entry{"./dir//big", big, 0o755})})
	f, err := from.Open(first.Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	blobs, _ := openUnpacked(t)
	if _, err := blobs.Put(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	p := pack(t, blobs, Upload{Resources: []Resource{{Path: "big", Mode: 0o755, SHA1: first.Pool[0].SHA1, Size: int64(len(big))}},
		Pool: func(string, int64) (Known, bool) { return Known{first.Digest, first.Pool[0].Entry}, true }})
	got, err := blobs.OpenFile(p.Digest, "big")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if content, err := io.ReadAll(got); err != nil || string(content) != big {
		t.Errorf("got %d bytes, %v", len(content), err)
	}
}

// TestADamagedKnownFile is not taken over.
func TestADamagedKnownFile(t *testing.T) {
	t.Parallel()
	blobs, layers := openUnpacked(t)
	big := noise(1, 300_000)
	first := pack(t, blobs, Upload{Zip: uploaded(t, blobs, entry{"big", big, 0o644})})
	dir, _ := layers.Kept(first.Digest)
	file := filepath.Join(dir, tree.FS, "big")
	info, err := os.Stat(file)
	if err == nil {
		err = errors.Join(os.WriteFile(file, []byte(noise(2, 300_000)), 0), os.Chtimes(file, time.Time{}, info.ModTime()))
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = Pack(context.Background(), blobs, Upload{Resources: []Resource{{Path: "a", SHA1: first.Pool[0].SHA1, Size: 300_000}},
		Pool: func(string, int64) (Known, bool) { return Known{first.Digest, "big"}, true }})
	if lost, cause := Lost(err); lost != first.Digest || !errors.Is(cause, durable.ErrDamaged) || !IsInvalid(err) {
		t.Errorf("got %v, due to %v; want that the stored file is damaged, and where", err, cause)
	}
}
