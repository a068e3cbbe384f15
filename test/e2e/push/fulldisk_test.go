package push

import (
	"testing"

	"cupola/test/e2e"
)

// TestMistakesOnAFullDisk pushes while the data directory's disk has room for less and
// less of it. Each push ends with the cause and how to mend it.
func TestMistakesOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := e2e.NewLoopDisk(t, 512<<20)
	d := disk.Start()
	const full, ask = "data directory's disk is full", "sk the operator to free space on it"
	for _, c := range []struct {
		name  string
		left  int64 // MB; the app has 6, its package, droplet and container each
		noApp bool
	}{
		{"full-at-once", 0, true},
		{"full-upload", 4, true}, // the app is made, and has nothing to say yet
		{"full-droplet", 9, false},
		{"full-start", 16, false}, // 4 MB are left: too few for the container, enough for the database
	} {
		disk.FillBut(c.left << 20)
		m := mistake{name: c.name, file: "big " + noise(6<<20), manifest: onHost("exec python3 -m http.server $PORT"), noApp: c.noApp, cause: full, mend: ask}
		got := m.make(d)
		t.Logf("%s:\n%s", m.name, got.text())
		m.judge(t, got)
		if c.name == "full-start" && got.event == "" || c.name == "full-droplet" && got.build == "" {
			t.Errorf("%s: the disk was full at another moment:\n%s", c.name, got.text())
		}
	}
	disk.Free()
	if out, err := d.Run("push", e2e.Example(t, "node")); err != nil {
		t.Errorf("with room again: %v\n%s", err, out)
	}
}
