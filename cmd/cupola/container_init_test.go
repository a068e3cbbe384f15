package main

import (
	"fmt"
	"strings"
	"syscall"
	"time"
)

// orphansAreReaped has an app leave more processes behind than it may have.
func (d *daemon) orphansAreReaped() {
	d.t.Helper()
	before := d.running("probe", "web", 1)[0]
	made := 0
	eventually(d.t, 60*time.Second, func() string { // what is not reaped yet counts
		_, body, err := d.get("probe.localhost", "/orphans?count=100")
		if err == nil && body == "100 orphans\n" {
			made += 100
		}
		if made >= 1500 {
			return ""
		}
		return fmt.Sprintf("made %d orphans: %s, %v", made, body, err)
	})
	eventually(d.t, 10*time.Second, func() string {
		_, body, err := d.get("probe.localhost", "/zombies")
		if err == nil && body == "0 zombies\n" {
			return ""
		}
		return fmt.Sprintf("got %q, %v; want no zombies", body, err)
	})
	if after := d.running("probe", "web", 1)[0]; after.InstanceGUID != before.InstanceGUID {
		d.t.Error("the instance did not live through it")
	}
}

// endsBySignals has the app send itself signals, and wants Diego's words.
func (d *daemon) endsBySignals() {
	d.t.Helper()
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		d.answers("probe", "ready")
		_, _, _ = d.get("probe.localhost", fmt.Sprintf("/die?signal=%d", sig))
		want := fmt.Sprintf("APP/PROC/WEB: Exited with status %d", 128+sig)
		eventually(d.t, 30*time.Second, func() string {
			for _, c := range d.crashes("probe") {
				if c.Data.Description == want {
					return ""
				}
			}
			return fmt.Sprintf("got crashes %+v; want %q", d.crashes("probe"), want)
		})
		d.logged("probe", strings.Replace(want, "APP/PROC/WEB: Exited with", "Exit", 1))
	}
}
