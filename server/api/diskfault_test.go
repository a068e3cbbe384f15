package api

import (
	"crypto/rand"
	"crypto/sha1"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// droplet makes a droplet that awaits its upload, as {new}.
func (w *world) droplet(t *testing.T) {
	t.Helper()
	w.run(t, []step{{method: "POST", path: "/v3/droplets", body: `{"relationships": {"app": {"data": {"guid": "app-1"}}}}`, status: 201, save: "new"}})
}

// damage flips a bit of the only blob, whose content is good.
func (w *world) damage(t *testing.T, good []byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, "blobs", "*", strings.Repeat("[0-9a-f]", 64)))
	if err != nil || len(files) != 1 {
		t.Fatalf("got %v, %v; want one blob", files, err)
	}
	f, err := os.OpenFile(files[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte{good[len(good)/2] ^ 1}, int64(len(good)/2))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestADamagedKnownFileIsUploadedAgain damages the package that known files are in: an
// upload that counts on one of them is refused, and from then on all are unknown.
func TestADamagedKnownFileIsUploadedAgain(t *testing.T) {
	w := newWorld(t)
	text := strings.Repeat("0123456789abcdef", 8<<10)
	sum := sha1.Sum([]byte(text))
	file := fmt.Sprintf(`[{"path": "big", "mode": "0644", "checksum": {"value": "%x"}, "size_in_bytes": %d}]`, sum, len(text))
	good := zipOf(t, "big", text, "other", text+"x")
	matches := func(want string) {
		t.Helper()
		w.run(t, []step{{method: "POST", path: "/v3/resource_matches", body: `{"resources": ` + file + `}`, status: 201, want: want}})
	}
	push := func(bits []byte, resources string) answer {
		t.Helper()
		w.run(t, []step{{method: "POST", path: "/v3/packages", body: `{"type": "bits", "relationships": {"app": {"data": {"guid": "app-1"}}}}`, status: 201, save: "new"}})
		return w.uploadWith("admin", "/v3/packages/{new}/upload", "app.zip", bits, map[string]string{"resources": resources})
	}
	if got := push(good, "[]"); got.status != 200 {
		t.Fatalf("got %d %s", got.status, got.text)
	}
	matches(`{"resources": [{"path": "big"}]}`)
	w.damage(t, good)
	got := push(zipOf(t, "index.html", "x"), file)
	if got.status != 422 || !strings.Contains(got.text, `"CF-AppBitsUploadInvalid"`) || !strings.Contains(got.text, "big: is not known here any longer: push again") {
		t.Errorf("got %d %s; want that the file must be uploaded", got.status, got.text)
	}
	matches(`{"resources": []}`)
	if got := push(good, "[]"); got.status != 200 {
		t.Errorf("uploaded again: got %d %s", got.status, got.text)
	}
	if got := push(zipOf(t, "index.html", "x"), file); got.status != 200 {
		t.Errorf("after it was uploaded again: got %d %s", got.status, got.text)
	}
}

// TestADamagedDropletIsNotSent flips a bit of a droplet on the disk: a download
// is refused before its first byte, and to upload the droplet again mends it.
func TestADamagedDropletIsNotSent(t *testing.T) {
	w := newWorld(t)
	good := tgzOf(t, "./app/run", "x")
	w.droplet(t)
	if got := w.upload("admin", "/v3/droplets/{new}/upload", "d.tgz", good); got.status != 202 {
		t.Fatalf("got %d %s", got.status, got.text)
	}
	w.damage(t, good)
	path := w.fill("/v3/droplets/{new}/download")
	got := w.ask("admin", "GET", path, "", "")
	if got.status != 500 || !strings.Contains(got.text, `"CF-BlobstoreError"`) || !strings.Contains(got.text, "is damaged") {
		t.Errorf("got %d %q; want 500 CF-BlobstoreError", got.status, got.text)
	}
	w.droplet(t)
	if got := w.upload("admin", "/v3/droplets/{new}/upload", "d.tgz", good); got.status != 202 {
		t.Fatalf("got %d %s", got.status, got.text)
	}
	if got := w.ask("admin", "GET", path, "", ""); got.status != 200 {
		t.Errorf("after it was uploaded again: got %d %s", got.status, got.text)
	}
}

// TestAnUploadToAFullDisk is refused by name, leaves nothing, and can be made
// again.
func TestAnUploadToAFullDisk(t *testing.T) {
	w := newWorld(t)
	tmp := filepath.Join(w.dir, "blobs", "tmp")
	if err := syscall.Mount("none", tmp, "tmpfs", 0, "size=256k"); err != nil {
		t.Skip("needs root for a small file system:", err)
	}
	mounted := true
	unmount := func() {
		if mounted {
			mounted = false
			if err := syscall.Unmount(tmp, 0); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(unmount)
	noise := make([]byte, 1<<20) // or it would be packed
	rand.Read(noise)
	big := tgzOf(t, "./app/run", string(noise))
	w.droplet(t)
	got := w.upload("admin", "/v3/droplets/{new}/upload", "d.tgz", big)
	if got.status != 507 || !strings.Contains(got.text, `"CF-DatabaseError"`) || strings.Contains(got.text, w.dir) {
		t.Errorf("got %d %q; want 507 CF-DatabaseError without a path", got.status, got.text)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v; want nothing", left, err)
	}
	unmount()
	if got := w.upload("admin", "/v3/droplets/{new}/upload", "d.tgz", big); got.status != 202 {
		t.Errorf("with room: got %d %s; want 202", got.status, got.text)
	}
}
