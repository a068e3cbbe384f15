package restart

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cupola/test/e2e"
)

// TestAPackageIsStoredOnce wants the files of a package, its droplet and the app's next packages on the disk once, if they do not
// compress. The package outlives a killed daemon, can be downloaded, copied and staged again, and is named if it lost bits.
func TestAPackageIsStoredOnce(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	dir, big := t.TempDir(), make([]byte, 3<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(big) // never fails
	write := func(name string, content []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("Staticfile", nil)
	write("index.html", []byte("first"))
	write("big.bin", big)
	e2e.WriteManifest(t, dir, e2e.Doc{"name": "large", "memory": "64M", "disk_quota": "128M"})
	push := func(want string) (digest string) {
		t.Helper()
		if out, err := d.Run("push", dir); err != nil || !strings.Contains(out, want) {
			t.Fatalf("push: %v\n%s; want %q", err, out, want)
		}
		return bitsOf(d, "large").Digest
	}
	first := push("")
	if _, err := os.Stat(filepath.Join(d.Dir, "blobs", first[:2], first)); err == nil {
		t.Error("the package is a blob, too")
	}
	wantShared(t, keptFile(d, checksum(d, d.App("large")), "app/big.bin"), packageFile(d, first, "big.bin"))
	d.Kill()
	d.Start()
	wantBits(d, bitsOf(d, "large"), big)
	if again := push("staging is skipped"); again != first {
		t.Errorf("an unchanged app has the package %s; want %s", again, first)
	}
	write("index.html", []byte("second"))
	second := push("")
	wantShared(t, packageFile(d, second, "big.bin"), packageFile(d, first, "big.bin"))
	d.Answers("large", "second")
	if got := areas(d)["packages"].Bytes; got < int64(len(big)) || got > int64(len(big))*5/4 {
		t.Errorf("two packages with the same file of %d bytes take %d", len(big), got)
	}
	stageCopy(d, bitsOf(d, "large").GUID)
	if err := os.WriteFile(packageFile(d, second, "big.bin"), []byte("other bits"), 0); err != nil {
		t.Fatal(err)
	}
	d.Kill() // the next daemon has not read it
	d.Start()
	var build struct{ GUID string }
	d.API("POST", "/v3/builds", e2e.Doc{"package": e2e.Doc{"guid": bitsOf(d, "large").GUID}}, &build)
	if b := d.Built(t, build.GUID); b.State != "FAILED" || strings.Contains(b.Error, d.Dir) {
		t.Errorf("got %+v of a damaged package; want it failed, and no path", b)
	}
	if !strings.Contains(d.Log.String(), second+": stored file is damaged") {
		t.Error("the log does not name the damaged package")
	}
}

// bits is a package.
type bits struct{ GUID, Digest string }

// bitsOf is the newest package of an app.
func bitsOf(d *e2e.Daemon, app string) bits {
	d.T.Helper()
	var list struct {
		Resources []struct {
			GUID string
			Data struct{ Checksum struct{ Value string } }
		}
	}
	d.API("GET", "/v3/packages?order_by=-created_at&app_guids="+d.App(app), nil, &list)
	if len(list.Resources) == 0 {
		d.T.Fatal("the app has no package")
	}
	return bits{list.Resources[0].GUID, list.Resources[0].Data.Checksum.Value}
}

// packageFile is a file of a package on the disk.
func packageFile(d *e2e.Daemon, digest, name string) string {
	d.T.Helper()
	found, err := filepath.Glob(filepath.Join(d.Dir, "rootfs", "layers", digest+"-*", "fs", name))
	if err != nil || len(found) != 1 {
		d.T.Fatalf("got %v, %v; want one file", found, err)
	}
	return found[0]
}

func wantShared(t *testing.T, a, b string) {
	t.Helper()
	of, err := os.Stat(a)
	other, oerr := os.Stat(b)
	if err := errors.Join(err, oerr); err != nil || !os.SameFile(of, other) {
		t.Errorf("%s and %s are two files, %v; want one", a, b, err)
	}
}

// wantBits downloads a package, whose zip has the file big.bin and the digest that the API tells.
func wantBits(d *e2e.Daemon, b bits, big []byte) {
	d.T.Helper()
	body, err := d.Client().Download(context.Background(), "/v3/packages/"+b.GUID+"/download")
	if err != nil {
		d.T.Fatal(err)
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err != nil {
		d.T.Fatal(err)
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != b.Digest {
		d.T.Errorf("the download has another SHA-256 than %s", b.Digest)
	}
	r, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		d.T.Fatal(err)
	}
	if got, err := fs.ReadFile(r, "big.bin"); err != nil || !bytes.Equal(got, big) {
		d.T.Errorf("got %d bytes, %v; want the file", len(got), err)
	}
}

// stageCopy copies a package to another app, and stages it there.
func stageCopy(d *e2e.Daemon, source string) {
	d.T.Helper()
	var app, copied, build struct{ GUID string }
	d.API("POST", "/v3/apps", e2e.Doc{"name": "copy", "relationships": e2e.Doc{"space": e2e.ToOne(d.First("/v3/spaces"))}}, &app)
	d.API("POST", "/v3/packages?source_guid="+source, e2e.Doc{"relationships": e2e.Doc{"app": e2e.ToOne(app.GUID)}}, &copied)
	d.API("POST", "/v3/builds", e2e.Doc{"package": e2e.Doc{"guid": copied.GUID}}, &build)
	if b := d.Built(d.T.(*testing.T), build.GUID); b.State != "STAGED" {
		d.T.Errorf("got %+v of the copy", b)
	}
}
