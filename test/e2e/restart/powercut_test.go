package restart

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"cupola/test/e2e"
	"cupola/test/powercut"
)

const (
	daemonCuts    = 6
	manyCuts      = 40 // in make test-all
	cutWriters    = 3
	appsOfWriters = 15 // each
)

// promise is an app and a package with a file that the API answered for, and the
// moment of the disk by which it did.
type promise struct {
	app, pkg string
	content  []byte
	moment   int
}

// TestPowerCuts has three clients make apps and upload packages, cuts the
// daemon's power at random moments, and wants the next daemon to have all that
// was answered. Beside it, package store cuts more often.
func TestPowerCuts(t *testing.T) {
	t.Parallel()
	binary := e2e.NeedBinary(t)
	seed, cuts := e2e.Seed(), daemonCuts
	if e2e.Thorough() {
		cuts = manyCuts
	}
	disk, promises := writeThroughTheAPI(t, binary)
	t.Logf("%d apps with packages, %d operations of the disk, seed %d", len(promises), disk.Now(), seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var moments []int
	for range cuts {
		moments = append(moments, rng.IntN(disk.Now()+1))
	}
	slices.Sort(moments)
	replay, top := disk.Replay(), e2e.NewDir(t)
	defer os.RemoveAll(top)
	for n, moment := range moments {
		image, dir := filepath.Join(top, strconv.Itoa(n)), filepath.Join(top, "fs")
		if err := errors.Join(os.MkdirAll(dir, 0o711), replay.Image(image, moment, rng)); err != nil {
			t.Fatal(err)
		}
		kept := slices.DeleteFunc(slices.Clone(promises), func(p promise) bool { return p.moment > moment })
		err := powercut.Mount(image, dir, func() error { return restartAfterCut(t, binary, filepath.Join(dir, "data"), kept) })
		if err := errors.Join(err, os.Remove(image)); err != nil {
			t.Fatalf("cut %d, after %d of %d operations, with %d promises: %v; CUPOLA_SEED=%d", n, moment, disk.Now(), len(kept), err, seed)
		}
	}
}

// writeThroughTheAPI runs a daemon on a recorded disk, from its first start, for
// the clients.
func writeThroughTheAPI(t *testing.T, binary string) (*powercut.Disk, []promise) {
	t.Helper()
	top := e2e.NewDir(t)
	disk, err := powercut.New(top, 256<<20)
	if err != nil {
		t.Fatal(err)
	}
	d := &e2e.Daemon{T: t, Binary: binary, Dir: filepath.Join(disk.Dir, "data"), Addr: "127.0.0.1:0", Log: &e2e.LogBuffer{}, Admin: &e2e.AdminSession{}}
	end := -1
	defer func() {
		d.Destroy()
		if err := errors.Join(disk.Close(), os.RemoveAll(top)); err != nil {
			t.Error(err)
		}
		if end >= 0 {
			disk.End(end)
		}
	}()
	d.Start()
	space, err := d.Client().First(t.Context(), "space", "/v3/spaces")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var promises []promise
	var clients sync.WaitGroup
	for w := range cutWriters {
		clients.Go(func() {
			for n := range appsOfWriters {
				p, err := makeApp(t.Context(), d.Client(), space, fmt.Sprintf("app-%d-%d", w, n), n%2*100_000)
				if err != nil {
					t.Error(err)
					return
				}
				p.moment = disk.Now()
				mu.Lock()
				promises = append(promises, p)
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	end = disk.Now()
	return disk, promises
}

// makeApp makes an app and uploads a package of it. With noise, which does not compress, it is stored unpacked.
func makeApp(ctx context.Context, c *e2e.Client, space, name string, noise int) (p promise, err error) {
	var app, pkg struct{ GUID string }
	err = c.Call(ctx, "POST", "/v3/apps", e2e.Doc{"name": name, "relationships": e2e.Doc{"space": e2e.Doc{"data": e2e.Doc{"guid": space}}}}, &app)
	if err != nil {
		return p, err
	}
	err = c.Call(ctx, "POST", "/v3/packages", e2e.Doc{"type": "bits", "relationships": e2e.Doc{"app": e2e.Doc{"data": e2e.Doc{"guid": app.GUID}}}}, &pkg)
	if err != nil {
		return p, err
	}
	content := make([]byte, noise+len(name))
	_, _ = rand.NewChaCha8([32]byte{}).Read(content[copy(content, name):]) // never fails
	bits, err := e2e.Zip("file", content)
	if err != nil {
		return p, err
	}
	return promise{app: app.GUID, pkg: pkg.GUID, content: content}, c.Upload(ctx, pkg.GUID, bits)
}

// restartAfterCut starts a daemon on what was left, and looks for what was
// promised.
func restartAfterCut(t *testing.T, binary, dir string, kept []promise) (err error) {
	d := &e2e.Daemon{T: t, Binary: binary, Dir: dir, Addr: "127.0.0.1:0", Log: &e2e.LogBuffer{}, Admin: &e2e.AdminSession{}}
	defer func() {
		d.Kill()
		if out, cerr := exec.Command(binary, "cleanup", "--data-dir", dir).CombinedOutput(); cerr != nil {
			err = errors.Join(err, fmt.Errorf("cupola cleanup: %w: %s", cerr, out))
		}
		if err != nil {
			t.Logf("the daemon's log:\n%s", d.Log)
		}
	}()
	d.Start()
	for _, p := range kept {
		if err := d.Client().Call(t.Context(), "GET", "/v3/apps/"+p.app, nil, nil); err != nil {
			return fmt.Errorf("app %s: %w", p.app, err)
		}
		if err := checkBits(t.Context(), d.Client(), p); err != nil {
			return fmt.Errorf("package %s: %w", p.pkg, err)
		}
	}
	return secretsAreOurs(dir)
}

// checkBits downloads a package.
func checkBits(ctx context.Context, c *e2e.Client, p promise) error {
	req, err := http.NewRequestWithContext(ctx, "GET", c.URL("/v3/packages/"+p.pkg+"/download"), nil)
	if err != nil {
		return err
	}
	res, err := c.Send(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	bits, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	r, err := zip.NewReader(bytes.NewReader(bits), int64(len(bits)))
	if err != nil {
		return err
	}
	got, err := fs.ReadFile(r, "file")
	if err == nil && !bytes.Equal(got, p.content) {
		err = fmt.Errorf("the %d bytes of its file are not those that were uploaded", len(got))
	}
	return err
}

// secretsAreOurs looks for files of a data directory that other users of the
// machine may read or write. What is mounted in it, stacks and the programs that
// containers run hold no secrets.
func secretsAreOurs(dir string) error {
	public := []string{"api", "ca.crt", "ca.pem", "subnet"}
	top, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	var open []error
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist): // the daemon has replaced it
		case err != nil:
			return err
		case slices.Contains([]string{"lifecycle", "rootfs"}, e.Name()) || info.Sys().(*syscall.Stat_t).Dev != top.Sys().(*syscall.Stat_t).Dev:
			if e.IsDir() {
				return fs.SkipDir
			}
		case info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 && !slices.Contains(public, e.Name()):
			open = append(open, fmt.Errorf("%s is %v; want it for its owner alone", path, info.Mode()))
		}
		return nil
	})
	return errors.Join(append(open, err)...)
}
