package cell

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A step that hangs when a container is taken down takes no time from the others,
// which are all undone, and is tried again until it is.
func TestStepThatHangsLeavesTheOthersTheirTime(t *testing.T) {
	for _, call := range []string{"remove", "unmount", "release"} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := boot(t, newMachine(t), t.TempDir())
				defer d.kill()
				d.Start(web())
				synctest.Wait()
				let := make(chan struct{})
				d.m.mu.Lock()
				d.m.stuck = map[string]chan struct{}{call: let}
				d.m.mu.Unlock()
				d.Stop("g1")
				<-time.After(downTimeout + 5*time.Second)
				got := d.last(t)
				if !got.Exit.Stopped {
					t.Errorf("got %+v; want its end told", got.Exit)
				}
				d.m.mu.Lock()
				left := map[string]int{"remove": len(d.m.running), "unmount": len(d.m.roots), "release": len(d.m.networks)}
				d.m.mu.Unlock()
				for step, n := range left {
					if (n != 0) != (step == call) {
						t.Errorf("got %d left of what %s takes away, while %s hangs", n, step, call)
					}
				}
				<-time.After(3 * sweepInterval)
				d.m.mu.Lock()
				begun := slices.DeleteFunc(slices.Clone(d.m.calls), func(c string) bool { return c != call+" g1" })
				d.m.stuck = nil
				d.m.mu.Unlock()
				if len(begun) != 1 {
					t.Errorf("got %q; want it begun once while it hangs", begun)
				}
				close(let)
				<-time.After(2 * sweepInterval)
				synctest.Wait()
				d.wantNothing(t)
			})
		})
	}
}
