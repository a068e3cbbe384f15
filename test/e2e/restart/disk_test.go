package restart

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cupola/server/admin/disk"
	"cupola/test/e2e"
)

// cachingBuildpack leaves 8 MB of the stage's own in the build cache and 2 MB in the
// droplet.
var cachingBuildpack = map[string]string{
	"bin/detect": "#!/bin/sh\n",
	"bin/supply": "#!/bin/sh\nset -e\n[ -e \"$2/noise\" ] && echo the cache is there\nhead -c 8000000 /dev/urandom > \"$2/noise\"\n",
	"bin/finalize": `#!/bin/sh
head -c 2000000 /dev/urandom > "$1/noise"
`,
	"bin/release": "#!/bin/sh\necho '---\ndefault_process_types:\n  web: sleep 100000'\n",
}

// cachedApps are the apps that the tests push.
var cachedApps = []string{"one", "two", "three"}

// fillCaches pushes apps whose stagings leave build caches, so that each has an old
// droplet, too, and makes the caches look old to the next daemon.
func fillCaches(d *e2e.Daemon, flags ...string) {
	d.T.Helper()
	for _, app := range cachedApps {
		pushCached(d, app)
	}
	d.Kill()
	ageBlobs(d)
	d.Flags = flags
	d.Start()
}

func pushCached(d *e2e.Daemon, app string) string {
	d.T.Helper()
	dir := d.T.TempDir()
	e2e.WriteManifest(d.T.(*testing.T), dir, e2e.Doc{"name": app, "memory": "32M", "disk_quota": "64M", "stack": "host", "no-route": true, "health-check-type": "process", "buildpacks": []string{"caching"}})
	if err := os.WriteFile(filepath.Join(dir, "now"), []byte(time.Now().String()), 0o600); err != nil {
		d.T.Fatal(err)
	}
	return must(d, "push", dir)
}

// ageBlobs makes all blobs an hour old.
func ageBlobs(d *e2e.Daemon) {
	d.T.Helper()
	old := time.Now().Add(-time.Hour)
	for _, file := range blobFiles(d) {
		if err := os.Chtimes(file, old, old); err != nil {
			d.T.Fatal(err)
		}
	}
}

func blobFiles(d *e2e.Daemon) []string {
	d.T.Helper()
	files, err := filepath.Glob(filepath.Join(d.Dir, "blobs", "??", "*"))
	if err != nil {
		d.T.Fatal(err)
	}
	return files
}

// free is what is free on the data directory's disk, once all is written.
func free(d *e2e.Daemon) int64 {
	d.T.Helper()
	unix.Sync()
	var st unix.Statfs_t
	if err := unix.Statfs(d.Dir, &st); err != nil {
		d.T.Fatal(err)
	}
	return int64(st.Bavail) * st.Bsize //nolint:gosec // a size of this machine
}

// areas asks for what takes room.
func areas(d *e2e.Daemon) map[string]disk.Area {
	d.T.Helper()
	var u disk.Usage
	parse(d, must(d, "disk", "--json", "--data-dir", d.Dir), &u)
	all := map[string]disk.Area{}
	for _, a := range u.Areas {
		all[a.Name] = a
	}
	return all
}

func parse(d *e2e.Daemon, text string, into any) {
	d.T.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		d.T.Fatalf("%v:\n%s", err, text)
	}
}

// reclaim returns the bytes that a reclaim says it gives back.
func reclaim(d *e2e.Daemon, args ...string) (sum int64) {
	d.T.Helper()
	var all []disk.Reclaimed
	parse(d, must(d, append([]string{"disk", "reclaim", "--json", "--data-dir", d.Dir}, args...)...), &all)
	for _, r := range all {
		sum += r.Bytes
	}
	return sum
}

// sound checks that all apps start again from their droplets, and can be pushed.
func sound(d *e2e.Daemon) {
	d.T.Helper()
	for _, app := range cachedApps {
		d.RestartApp(app)
		d.Running(app, "web", 1)
	}
	pushCached(d, cachedApps[0])
	d.Running(cachedApps[0], "web", 1)
}

// TestDisk fills a disk with build caches and droplets. A dry run deletes nothing, a
// reclaim gives back what it said, with a daemon and without one, and no app misses
// anything.
func TestDisk(t *testing.T) {
	t.Parallel()
	d := e2e.NewLoopDisk(t, 1<<30).Start("--disk-low-water", "off")
	d.AddBuildpack("caching", cachingBuildpack)
	fillCaches(d, "--disk-low-water", "off")
	all := areas(d)
	caches := all["build caches"]
	if want := int64(len(cachedApps)) * 8_000_000; caches.Reclaimable < want || caches.Bytes < want || all["droplets"].Reclaimable != 0 || all["packages"].Bytes == 0 || all["database"].Bytes == 0 {
		t.Errorf("got areas %+v; want build caches of %d bytes that can be reclaimed", all, want)
	}
	before, files := free(d), len(blobFiles(d))
	said := reclaim(d, "--dry-run")
	if got := len(blobFiles(d)); got != files {
		t.Errorf("the dry run left %d of %d blobs", got, files)
	}
	if some := reclaim(d, "--dry-run", "--size", "9M"); some <= 9<<20 || some > 2*9<<20 {
		t.Errorf("got %d bytes of a reclaim of 9 MB; want two build caches' at most", some)
	}
	given := reclaim(d)
	if got := free(d) - before; given != said || got < said*9/10 || got > said*11/10 {
		t.Errorf("the dry run said %d bytes, the reclaim %d, and the disk has %d more free", said, given, got)
	}
	if left := areas(d); left["droplets"].Bytes != all["droplets"].Bytes || left["packages"].Bytes != all["packages"].Bytes || left["build caches"].Bytes != 0 {
		t.Errorf("after the reclaim: %+v; before: %+v", left, all)
	}
	for _, app := range cachedApps {
		d.Running(app, "web", 1)
	}
	sound(d)
	if out := pushCached(d, cachedApps[0]); !strings.Contains(out, "the cache is there") {
		t.Errorf("the next push has no build cache:\n%s", out)
	}
	d.Kill()
	ageBlobs(d)
	if said, given := reclaim(d, "--dry-run"), reclaim(d); said < 8_000_000 || said != given {
		t.Errorf("without a daemon: the dry run said %d bytes, the reclaim %d", said, given)
	}
	if out, err := d.Run("disk", "--data-dir", filepath.Join(d.Dir, "none")); err == nil || !strings.Contains(out, "no data directory") {
		t.Errorf("of no data directory: %v\n%s", err, out)
	}
	d.Start()
	sound(d)
}

// TestReclaimIsKilled kills the daemon in the middle of reclaims.
func TestReclaimIsKilled(t *testing.T) {
	t.Parallel()
	d := e2e.NewLoopDisk(t, 1<<30).Start("--disk-low-water", "off")
	d.AddBuildpack("caching", cachingBuildpack)
	for range 3 {
		fillCaches(d, "--disk-low-water", "off")
		asked := exec.Command(d.Binary, "disk", "reclaim", "--data-dir", d.Dir)
		if err := asked.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
		d.Kill()
		_ = asked.Wait() // its daemon is gone
		d.Start()
		sound(d)
	}
}

// TestLowWaterMark lets the disk run short while apps are pushed: the daemon deletes
// caches, the oldest first, and nothing else.
func TestLowWaterMark(t *testing.T) {
	t.Parallel()
	loop := e2e.NewLoopDisk(t, 1<<30)
	d := loop.Start("--disk-low-water", "off")
	d.AddBuildpack("caching", cachingBuildpack)
	fillCaches(d, "--disk-low-water", "100M")
	droplets := areas(d)["droplets"].Bytes
	const mark = 100 << 20                         // apps are pushed and started with 60 MB, too
	loop.FillBut(mark - 4<<20)                     // a little more than one build cache is enough
	e2e.Eventually(t, time.Minute, func() string { // it is free a moment before the log says so
		if got := free(d); got < mark || !strings.Contains(d.Log.String(), "the disk is short: caches were deleted") {
			return fmt.Sprintf("%d bytes are free; want %d, and the log to say that caches were deleted", got, mark)
		}
		return ""
	})
	if left := areas(d); left["build caches"].Bytes < 8_000_000 || left["droplets"].Bytes != droplets {
		t.Errorf("got %+v left; want some build caches, and droplets of %d bytes", left, droplets)
	}
	loop.FillBut(mark - 1<<20)
	pushCached(d, "two")
	loop.FillBut(mark - 40<<20) // more than all caches have
	e2e.Eventually(t, time.Minute, func() string {
		if !strings.Contains(d.Log.String(), "no cache is left to delete") {
			return "the log does not say that nothing is left to delete"
		}
		return ""
	})
	sound(d)
}
