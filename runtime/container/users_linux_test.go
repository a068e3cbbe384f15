package container

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cupola/runtime/users"
)

// TestLimitsOfUsersAreItsOwn has a container take all of what the kernel counts by
// user. Another container with its own users, and root of the host, have theirs.
func TestLimitsOfUsersAreItsOwn(t *testing.T) { eachKind(t, testLimitsOfUsersAreItsOwn) }

func testLimitsOfUsersAreItsOwn(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	greedy := b.spec("greedy", "take")
	greedy.Users, greedy.Process.Nofile = IDMap{Base: 0x78000000, Size: users.Size}, 16384
	_, r := b.start(t, greedy)
	lines := bufio.NewScanner(r)
	for lines.Scan() && lines.Text() != "ready" {
		name, rest, _ := strings.Cut(lines.Text(), " ")
		if strings.HasSuffix(rest, "<nil>") {
			t.Errorf("%s: got %s; want an end of it", name, rest)
		}
		t.Log(lines.Text())
	}
	other := b.spec("other", "modest")
	other.Users = IDMap{Base: 0x78010000, Size: users.Size}
	out, exit := b.output(t, other)
	want := "inotify <nil>\nflying <nil>\npipe <nil>\nsignal <nil>\n"
	if out != want || exit.Code != 0 {
		t.Errorf("got %+v and\n%s; want that another container has all", exit, out)
	}
	host := exec.Command(filepath.Join(b.rootfs, "bin", "probe"), "modest")
	if out, err := host.CombinedOutput(); string(out) != want || err != nil {
		t.Errorf("got %v and\n%s; want that the host's root has all", err, out)
	}
	same := b.spec("same", "modest")
	same.Users = greedy.Users
	if out, _ := b.output(t, same); strings.Contains(out, "inotify <nil>") {
		t.Errorf("got\n%s; want what one container took missing to another with the same users", out)
	}
}

// TestUsersAreMapped: each container has the host users that it was given.
func TestUsersAreMapped(t *testing.T) { eachKind(t, testUsersAreMapped) }

func testUsersAreMapped(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	for n, base := range []uint32{0x78000000, 0x78010000, testIDs.Base} {
		spec := b.spec(fmt.Sprintf("c%d", n), "cat", "/proc/self/uid_map")
		if base != testIDs.Base {
			spec.Users = IDMap{Base: base, Size: users.Size}
		}
		out, _ := b.output(t, spec)
		if got, want := strings.Join(strings.Fields(out), " "), fmt.Sprintf("0 %d %d", base, users.Size); got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	}
}

// TestOthersDisksAreHidden looks through /proc and /sys for the loop devices that
// other containers have their disks on, and for the files behind them.
func TestOthersDisksAreHidden(t *testing.T) { eachKind(t, testOthersDisksAreHidden) }

func testOthersDisksAreHidden(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	image := filepath.Join(tempDir(t), "disk-of-another-tenant.img")
	if err := os.WriteFile(image, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "--find", "--show", image).CombinedOutput()
	if err != nil {
		t.Skipf("no loop device: %v %s", err, out)
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("%v %s", err, out)
		}
	})
	name := filepath.Base(device)
	if text, err := os.ReadFile("/proc/diskstats"); err != nil || !strings.Contains(string(text), name) {
		t.Fatalf("got %v; want %s on the host", err, name)
	}
	found, _ := b.output(t, b.spec("scan", "scan", name, "disk-of-another"))
	if found != "scanned true\n" {
		t.Errorf("got\n%s; want nothing of %s", found, device)
	}
}
