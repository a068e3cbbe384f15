package push

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"cupola/test/e2e"
)

// orphansAreReaped makes an app leave more processes behind than it may have.
func orphansAreReaped(d *e2e.Daemon) {
	d.T.Helper()
	before := d.Running("probe", "web", 1)[0]
	made := 0
	e2e.Eventually(d.T, 5*time.Minute, func() string { // what is not reaped yet counts; thousands of programs take a busy machine long
		_, body, err := d.Get("probe.localhost", "/orphans?count=100")
		if err == nil && body == "100 orphans\n" {
			made += 100
		}
		if made >= 1500 {
			return ""
		}
		return fmt.Sprintf("made %d orphans: %s, %v", made, body, err)
	})
	e2e.Eventually(d.T, time.Minute, func() string {
		_, body, err := d.Get("probe.localhost", "/zombies")
		if err == nil && body == "0 zombies\n" {
			return ""
		}
		return fmt.Sprintf("got %q, %v; want no zombies", body, err)
	})
	if after := d.Running("probe", "web", 1)[0]; after.InstanceGUID != before.InstanceGUID {
		d.T.Error("the instance did not live through it")
	}
}

// endsBySignals makes the app send itself signals, and wants Diego's words.
func endsBySignals(d *e2e.Daemon) {
	d.T.Helper()
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		d.Answers("probe", "ready")
		_, _, _ = d.Get("probe.localhost", fmt.Sprintf("/die?signal=%d", sig))
		want := fmt.Sprintf("APP/PROC/WEB: Exited with status %d", 128+sig)
		e2e.Eventually(d.T, time.Minute, func() string {
			for _, c := range crashes(d, "probe") {
				if c.Data.Description == want {
					return ""
				}
			}
			return fmt.Sprintf("got crashes %+v; want %q", crashes(d, "probe"), want)
		})
		d.Logged("probe", strings.Replace(want, "APP/PROC/WEB: Exited with", "Exit", 1))
	}
}
