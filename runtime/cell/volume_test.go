package cell

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cupola/rootfs/volume"
	"cupola/runtime/container"
	"cupola/runtime/lrp"
	"cupola/runtime/users"

	"github.com/google/go-cmp/cmp"
)

func withVolume(guid string, v lrp.Volume) lrp.Container {
	c := web()
	c.GUID, c.ProcessGUID, c.Volumes = guid, guid, []lrp.Volume{v}
	return c
}

func haveVolumes(c *Cell) {
	c.cfg.Volumes = newShelf()
}

// mounted are what the containers so far have at /data.
func (h *host) mounted() (all []container.Mount) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.specs {
		for _, m := range s.Mounts {
			if m.Destination == "/data" || strings.HasPrefix(m.Destination, "/data/") {
				all = append(all, m)
			}
		}
	}
	return all
}

func TestAnExclusiveVolumeIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := boot(t, newMachine(t), t.TempDir(), haveVolumes)
		defer d.kill()
		v := lrp.Volume{Name: "db", Path: "/data", Exclusive: true}
		d.Start(withVolume("first", v))
		synctest.Wait()
		d.Start(withVolume("second", v))
		<-time.After(5 * time.Second)
		if got := d.m.mounted(); len(got) != 1 {
			t.Fatalf("got mounts %v; want that of the first alone", got)
		}
		d.Stop("first")
		<-time.After(5 * time.Second)
		synctest.Wait()
		want := []container.Mount{{Source: "/shown/first/0", Destination: "/data"}, {Source: "/shown/second/0", Destination: "/data"}}
		if diff := cmp.Diff(want, d.m.mounted()); diff != "" {
			t.Error(diff)
		}
		d.Stop("second")
		d.last(t)
		d.wantNothing(t)
	})
}

func TestASharedVolumeIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := boot(t, newMachine(t), t.TempDir(), haveVolumes)
		defer d.kill()
		for _, guid := range []string{"a", "b"} {
			d.Start(withVolume(guid, lrp.Volume{Name: "files", Path: "/data/", ReadOnly: true}))
		}
		synctest.Wait()
		want := []container.Mount{{Source: "/shown/a/0", Destination: "/data", ReadOnly: true}, {Source: "/shown/b/0", Destination: "/data", ReadOnly: true}}
		got := d.m.mounted()
		slices.SortFunc(got, func(a, b container.Mount) int { return strings.Compare(a.Source, b.Source) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAVolumeThatStaysTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := boot(t, newMachine(t), t.TempDir(), haveVolumes)
		defer d.kill()
		v := lrp.Volume{Name: "db", Path: "/data", Exclusive: true}
		d.Start(withVolume("first", v))
		synctest.Wait()
		d.Start(withVolume("second", v))
		<-time.After(volumeWait)
		if got, want := d.last(t).Exit.Reason, "failed to create container: volumes: volume db is another container's"; got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	})
}

// shelf has the directories that are there already, and makes those of owners.
type shelf struct {
	mu    sync.Mutex
	there map[string]bool
	shown map[string]int
	to    map[users.Range]bool // whom it showed something
}

func newShelf(there ...string) *shelf {
	s := &shelf{there: map[string]bool{"": true}, shown: map[string]int{}, to: map[users.Range]bool{}}
	for _, dir := range there {
		s.there[dir] = true
	}
	return s
}

func (s *shelf) Show(container string, n int, to users.Range, name, dir string, owner *volume.Owner) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.there[dir] && owner == nil {
		return "", fs.ErrNotExist
	}
	s.to[to] = true
	s.shown[container]++
	at := fmt.Sprintf("/shown/%s/%d", container, n)
	if owner != nil {
		at += fmt.Sprintf("/%d:%d", owner.UID, owner.GID)
	}
	return at, nil
}

func (s *shelf) Match(_, pattern string) (dirs []string, err error) {
	for _, dir := range slices.Sorted(maps.Keys(s.there)) {
		if ok, _ := path.Match(pattern, dir); ok {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

func (s *shelf) Hide(container string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.shown, container)
	return nil
}

// TestDirectoriesOfVolumes are mounted from places of the container's own, which
// go with it.
func TestDirectoriesOfVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf("there")
		d := boot(t, newMachine(t), t.TempDir(), func(c *Cell) { c.cfg.Volumes = s })
		defer d.kill()
		c := web()
		c.GUID, c.ProcessGUID = "one", "one"
		c.Volumes = []lrp.Volume{
			{Name: "db", Path: "/data", Dir: "made", Owner: "vcap", NoExec: true}, {Name: "db", Path: "/data", Dir: "missing", Optional: true},
			{Name: "db", Path: "/data", Dir: "there", ReadOnly: true}, {Name: "db", Path: "/data"},
		}
		d.Start(c)
		synctest.Wait()
		want := []container.Mount{
			{Source: "/shown/one/0/2000:2000", Destination: "/data", NoExec: true}, {Source: "/shown/one/2", Destination: "/data", ReadOnly: true}, {Source: "/shown/one/3", Destination: "/data"},
		}
		if diff := cmp.Diff(want, d.m.mounted()); diff != "" {
			t.Error(diff)
		}
		if s.shown["one"] != 3 || len(s.to) != 1 || !s.to[d.m.users["one"]] {
			t.Errorf("got %v shown to %v; want three to the container's users %v", s.shown, s.to, d.m.users["one"])
		}
		d.Stop("one")
		d.last(t)
		if len(s.shown) != 0 {
			t.Errorf("got %v shown; want nothing left", s.shown)
		}
		c.GUID, c.ProcessGUID, c.Volumes = "two", "two", []lrp.Volume{{Name: "db", Path: "/data", Dir: "missing"}}
		d.Start(c)
		if got := d.last(t).Exit.Reason; got != "failed to mount volume" {
			t.Errorf("got %q; want that the directory is missing", got)
		}
		d.wantNothing(t)
	})
}

// TestPatternsOfVolumes mounts each directory that matches a pattern, but for those that are mounted otherwise.
func TestPatternsOfVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := boot(t, newMachine(t), t.TempDir(), func(c *Cell) { c.cfg.Volumes = newShelf("xa", "xb", "xc", "y") })
		defer d.kill()
		c := web()
		c.GUID, c.ProcessGUID = "one", "one"
		c.Volumes = []lrp.Volume{
			{Name: "db", Path: "/data/x*", Dir: "x*", Pattern: true, ReadOnly: true}, {Name: "db", Path: "/data/z*", Dir: "z*", Pattern: true}, {Name: "db", Path: "/data/xb", Dir: "xb"},
		}
		d.Start(c)
		synctest.Wait()
		want := []container.Mount{
			{Source: "/shown/one/0", Destination: "/data/xa", ReadOnly: true}, {Source: "/shown/one/1", Destination: "/data/xc", ReadOnly: true}, {Source: "/shown/one/2", Destination: "/data/xb"},
		}
		if diff := cmp.Diff(want, d.m.mounted()); diff != "" {
			t.Error(diff)
		}
		d.Stop("one")
		d.last(t)
	})
}

func TestNoVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := boot(t, newMachine(t), t.TempDir())
		defer d.kill()
		d.Start(withVolume("one", lrp.Volume{Name: "db", Path: "/data"}))
		if got, want := d.last(t).Exit.Reason, "failed to create container: volumes: cell has no volumes"; got != want {
			t.Errorf("got %q; want %q", got, want)
		}
		d.wantNothing(t)
	})
}
