package container

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHostNamesAreHidden looks through /proc and /sys of a container, and of a
// process started in it later, for where its files and cgroups lie on the host,
// and for another container.
func TestHostNamesAreHidden(t *testing.T) { eachKind(t, testHostNamesAreHidden) }

func testHostNamesAreHidden(t *testing.T, kind Kind) {
	b := newBench(t, kind)
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

// TestMountWithoutSource shows an empty directory over another mount, and no path of the host.
func TestMountWithoutSource(t *testing.T) { eachKind(t, testMountWithoutSource) }

func testMountWithoutSource(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	shown := filepath.Join(filepath.Dir(b.rootfs), "shown")
	if err := os.MkdirAll(filepath.Join(shown, "etc/conf"), 0o755); err != nil {
		t.Fatal(err)
	}
	spec := func(args ...string) Spec {
		spec := b.spec("app", args...)
		spec.Process.UID, spec.Process.GID = 0, 0
		spec.Mounts = []Mount{{Source: shown, Destination: "/home", ReadOnly: true}, {Destination: "/home/etc"}}
		return spec
	}
	if out, _ := b.output(t, spec("ls", "/home")); out != "etc\n" {
		t.Errorf("got %q; want the mount", out)
	}
	if out, _ := b.output(t, spec("ls", "/home/etc")); out != "" {
		t.Errorf("got %q; want it empty", out)
	}
	out, _ := b.output(t, spec("cat", "/proc/self/mountinfo"))
	found := false
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); f[4] == "/home/etc" {
			found = f[3] == "/pts" && strings.HasPrefix(f[5], "ro,nosuid,nodev")
		}
	}
	if !found {
		t.Errorf("got\n%s; want an empty directory of a tmpfs, read-only, at /home/etc", out)
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
