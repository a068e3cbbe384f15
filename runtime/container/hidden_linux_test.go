package container

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestHostNamesAreHidden looks through /proc and /sys of a container, and of a
// process started in it later, for where its files and cgroups lie on the host,
// and for another container.
func TestHostNamesAreHidden(t *testing.T) {
	b := newBench(t)
	other, ready := b.start(t, b.spec("another-container", "sleep"))
	waitLine(t, ready, "ready\n")
	base := filepath.Base(filepath.Dir(b.cfg.Dir)) // in which the root lies, too: here it is a plain directory
	words := []string{"scan", b.cfg.CgroupParent, base + "/helper", base + "/state", other.ID}
	if found, _ := b.output(t, b.spec("first", words...)); found != "scanned true\n" {
		t.Errorf("first process: got\n%s; want nothing of the host", found)
	}
	_, ready = b.start(t, b.spec("app", "sleep"))
	waitLine(t, ready, "ready\n")
	if found := b.execOutput(t, "app", words...); found != "scanned true\n" {
		t.Errorf("further process: got\n%s; want nothing of the host", found)
	}
}

// execOutput runs the probe in a container that runs.
func (b *bench) execOutput(t *testing.T, id string, args ...string) string {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	x, err := b.Exec(t.Context(), id, Process{Args: append([]string{"/bin/probe"}, args...), UID: 2000}, Stdio{Out: in, Err: in})
	in.Close()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return string(text)
}
