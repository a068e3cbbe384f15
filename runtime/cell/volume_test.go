package cell

import (
	"testing"
	"testing/synctest"
	"time"

	"cupola/runtime/container"
	"cupola/runtime/lrp"

	"github.com/google/go-cmp/cmp"
)

func withVolume(guid string, v lrp.Volume) lrp.Container {
	c := web()
	c.GUID, c.ProcessGUID, c.Volumes = guid, guid, []lrp.Volume{v}
	return c
}

func haveVolumes(c *Cell) {
	c.cfg.Volumes = func(name string) (string, error) { return "/volumes/" + name, nil }
}

// mounted are what the containers so far have at /data.
func (h *host) mounted() (all []container.Mount) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.specs {
		for _, m := range s.Mounts {
			if m.Destination == "/data" {
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
		want := container.Mount{Source: "/volumes/db", Destination: "/data"}
		if diff := cmp.Diff([]container.Mount{want, want}, d.m.mounted()); diff != "" {
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
		want := container.Mount{Source: "/volumes/files", Destination: "/data", ReadOnly: true}
		if diff := cmp.Diff([]container.Mount{want, want}, d.m.mounted()); diff != "" {
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
