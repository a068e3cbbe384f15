package cell

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"cupola/runtime/health"
	"cupola/runtime/lrp"
)

// counted is a health check that finds the container healthy, and counts how often it
// begins and ends.
type counted struct{ begun, ended int }

func (n *counted) check(ctx context.Context, spec *health.Spec, tell func(health.Event)) {
	n.begun++
	if !spec.Healthy {
		tell(health.Event{Type: health.Healthy})
		tell(health.Event{Type: health.Ready})
	}
	<-ctx.Done()
	n.ended++
}

// serving boots a daemon with a container g1 that runs and is ready.
func serving(t *testing.T, m *machine, dir string, n *counted) *daemon {
	t.Helper()
	d := boot(t, m, dir, func(c *Cell) { c.check = n.check })
	d.Start(web())
	synctest.Wait()
	return d
}

func (d *daemon) frozen() bool {
	list := d.Containers()
	return len(list) == 1 && list[0].Frozen && list[0].Phase == lrp.PhaseRunning && list[0].Ready
}

func TestFreezePausesHealthChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, n := newMachine(t), &counted{}
		d := serving(t, m, t.TempDir(), n)
		defer d.kill()
		if err := d.Freeze(t.Context(), "g1"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !d.frozen() || n.begun != 1 || n.ended != 1 {
			t.Fatalf("got frozen %t, checks %+v; want the container frozen and its check ended", d.frozen(), n)
		}
		<-time.After(reclaimAfter)
		synctest.Wait()
		if !slices.Contains(m.calls, "reclaim g1") {
			t.Errorf("got %v; want memory given back", m.calls)
		}
		for range 2 {
			if err := d.Thaw("g1"); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if d.frozen() || n.begun != 2 || n.ended != 1 {
			t.Errorf("got frozen %t, checks %+v; want it checked again", d.frozen(), n)
		}
		before := len(m.calls)
		if err := errors.Join(d.Freeze(t.Context(), "g1"), d.Thaw("g1")); err != nil {
			t.Fatal(err)
		}
		<-time.After(reclaimAfter)
		if slices.Contains(m.calls[before:], "reclaim g1") {
			t.Error("memory of a container that is thawed was given back")
		}
		d.Stop("g1")
		if got := d.last(t).Exit; !got.Stopped {
			t.Errorf("got %+v; want stopped", got)
		}
		d.wantNothing(t)
	})
}

func TestFrozenContainerIsAdoptedAndStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir, n := newMachine(t), t.TempDir(), &counted{}
		first := serving(t, m, dir, n)
		if err := first.Freeze(t.Context(), "g1"); err != nil {
			t.Fatal(err)
		}
		first.kill()
		n.begun, n.ended = 0, 0
		second := boot(t, m, dir, func(c *Cell) { c.check = n.check })
		defer second.kill()
		synctest.Wait()
		if !second.frozen() || n.begun != 0 {
			t.Fatalf("got frozen %t, checks %+v; want it adopted as frozen", second.frozen(), n)
		}
		second.Stop("g1")
		if got := second.last(t).Exit; !got.Stopped || got.Code != 128+15 {
			t.Errorf("got %+v; want it ended by SIGTERM", got)
		}
		second.wantNothing(t)
	})
}

func TestFreezeRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, n := newMachine(t), &counted{}
		d := serving(t, m, t.TempDir(), n)
		defer d.kill()
		if err := d.Freeze(t.Context(), "other"); !errors.Is(err, errNotRunning) {
			t.Errorf("got %v; want %v", err, errNotRunning)
		}
		release, err := d.instance("g1").stay()
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Freeze(t.Context(), "g1"); !errors.Is(err, ErrBusy) {
			t.Errorf("with a session: got %v; want %v", err, ErrBusy)
		}
		release()
		m.fail["freeze"] = errors.New("the disk does not answer")
		if err := d.Freeze(t.Context(), "g1"); err == nil || d.frozen() {
			t.Errorf("got %v, frozen %t; want an error, and the container as it was", err, d.frozen())
		}
		delete(m.fail, "freeze")
		if err := d.Freeze(t.Context(), "g1"); err != nil || !d.frozen() {
			t.Errorf("got %v, frozen %t; want it frozen", err, d.frozen())
		}
		if _, err = d.instance("g1").stay(); err != nil || d.frozen() {
			t.Errorf("got %v, frozen %t; want a session to thaw it", err, d.frozen())
		}
		d.Stop("g1")
		d.last(t)
		if err := d.Freeze(t.Context(), "g1"); err == nil {
			t.Error("got no error; want none frozen that is stopped")
		}
	})
}
