package cell

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cupola/runtime/fault"
	"cupola/runtime/lrp"
)

// A panic in any part of a container ends that container, with the reason where
// users look for it, and no other. Nothing of it is left.
func TestPanicEndsItsContainerAlone(t *testing.T) {
	fault.Watch(func(*fault.Panic) {})
	for _, call := range []string{"mount", "acquire", "extract", "start", "exec", "unmount"} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := boot(t, newMachine(t), t.TempDir())
				defer d.kill()
				other := web()
				other.GUID = "other"
				d.Start(other)
				synctest.Wait()
				spec := web()
				spec.Action = lrp.Codependent(spec.Action, side())
				d.failing(call, errPanics)
				d.Start(spec)
				if call == "unmount" {
					synctest.Wait()
					d.Stop(spec.GUID)
				}
				got := d.last(t)
				if call != "unmount" && (!got.Exit.Failed || !strings.Contains(got.Exit.Reason, "panic: broken")) {
					t.Errorf("got %+v; want the panic as the reason", got.Exit)
				}
				d.failing(call, nil)
				<-time.After(2 * sweepInterval)
				synctest.Wait()
				list := d.Containers()
				if len(list) != 1 || list[0].GUID != "other" || list[0].Phase != lrp.PhaseRunning {
					t.Errorf("got %+v; want the other running", list)
				}
				d.Stop("other")
				d.last(t)
				d.wantNothing(t)
			})
		})
	}
}

func (d *daemon) failing(call string, err error) {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	d.m.fail = map[string]error{}
	if err != nil {
		d.m.fail[call] = err
	}
}
