package push

import (
	"fmt"
	"testing"

	"cupola/test/e2e"
)

// TestMistakesOnAFullDisk pushes while the data directory's disk has room for less and
// less of it. Each push ends with the cause and how to mend it.
func TestMistakesOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := e2e.NewLoopDisk(t, 512<<20)
	d := disk.Start()
	push := func(name string, left int64, noApp bool) said {
		disk.FillBut(left << 20)
		m := mistake{name: name, file: "big " + noise(6<<20), manifest: onHost("exec python3 -m http.server $PORT"), noApp: noApp,
			cause: "data directory's disk is full", mend: "sk the operator to free space on it"}
		got := m.make(d)
		t.Logf("%s:\n%s", m.name, got.text())
		m.judge(t, got)
		return got
	}
	push("full-at-once", 0, true)
	push("full-upload", 4, true) // the app is made, and has nothing to say yet
	// The app has 6 MB, its package, its droplet and its container each. How much the
	// database needs beside them depends on what else it does: the start fails for one of
	// these, since 6 MB lie between the droplet and the container.
	droplets := 0
	for left := int64(9); ; left += 3 {
		got := push(fmt.Sprint("full-", left), left, false)
		if got.event != "" {
			break
		}
		if got.build != "" {
			droplets++
		}
	}
	if droplets == 0 {
		t.Error("the disk was never full when a droplet was kept")
	}
	disk.Free()
	if out, err := d.Run("push", e2e.Example(t, "node")); err != nil {
		t.Errorf("with room again: %v\n%s", err, out)
	}
}
