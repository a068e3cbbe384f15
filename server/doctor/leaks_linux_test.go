package doctor

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cupola/runtime/network"
	"cupola/runtime/users"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		t.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
}

// TestCheckHere runs all checks on the machine of the tests, where containers
// do run.
func TestCheckHere(t *testing.T) {
	needRoot(t)
	results := Check(t.Context(), Options{
		DataDir: filepath.Join(passable(t), "data"), HTTP: "127.0.0.1:0", HTTPS: "off", Domain: "localhost",
		Subnet: func() (netip.Prefix, []network.Use, error) { return netip.MustParsePrefix("10.250.0.0/16"), nil, nil }, IDMap: users.Range{Base: 0x6c000000, Size: 1 << 16},
		Trial: func(context.Context, string) (map[string]error, error) { return nil, nil }, // test/e2e starts containers
	})
	if len(results) < 20 {
		t.Errorf("got %d results; want all", len(results))
	}
	for _, r := range results {
		t.Logf("%-4s %-10s %s", r.Level, r.Name, r.Detail)
		if r.Level == Fail && r.Name != "disk" && r.Name != "memory" {
			t.Errorf("%s failed: %s", r.Name, r.Detail)
		}
	}
}

// passable is a temporary directory that others may pass, as containers must.
func passable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// leftovers are those of a daemon that left one of each kind, and went.
type leftovers struct {
	owner Owner
	dir   string
}

func leaveOneOfEach(t *testing.T) leftovers {
	t.Helper()
	dir := passable(t)
	number := crc32.ChecksumIEEE([]byte(dir))
	name := fmt.Sprintf("cupola-%06x", number>>8)
	l := leftovers{dir: dir, owner: Owner{DataDir: dir, Table: name, Cgroup: name, LinkPrefix: fmt.Sprintf("c%06x", number>>8),
		Subnet: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 128 + byte(number%100), 0, 0}), 16)}}
	l.leaveNetwork(t)
	l.leaveMounts(t)
	l.leaveProcess(t)
	return l
}

func (l leftovers) leaveNetwork(t *testing.T) {
	t.Helper()
	n, err := network.New(network.Config{Dir: filepath.Join(l.dir, "netns"), Table: l.owner.Table, LinkPrefix: l.owner.LinkPrefix, Subnet: l.owner.Subnet})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Acquire(t.Context(), "container"); err != nil {
		t.Error(err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	t.Cleanup(func() {
		again, err := network.New(network.Config{Dir: filepath.Join(l.dir, "netns"), Table: l.owner.Table, LinkPrefix: l.owner.LinkPrefix, Subnet: l.owner.Subnet})
		if err == nil {
			err = again.Teardown(context.Background())
		}
		if err != nil {
			t.Error(err)
		}
	})
}

func (l leftovers) leaveMounts(t *testing.T) {
	t.Helper()
	run := filepath.Join(l.dir, "rootfs", "run", "container")
	for _, name := range []string{"root", "upper", "work", "disk"} {
		if err := os.MkdirAll(filepath.Join(run, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = unix.Unmount(filepath.Join(run, "root"), unix.MNT_DETACH)
		_ = unix.Unmount(filepath.Join(run, "disk"), unix.MNT_DETACH)
	})
	opts := fmt.Sprintf("lowerdir=/usr/share,upperdir=%s/upper,workdir=%s/work", run, run)
	if err := unix.Mount("overlay", filepath.Join(run, "root"), "overlay", 0, opts); err != nil {
		t.Fatal(err)
	}
	shell(t, fmt.Sprintf("cd %s && truncate -s 4M disk.img && mkfs.ext4 -q disk.img && mount -o loop disk.img disk && losetup -j disk.img | grep -q . && rm disk.img", run))
}

func (l leftovers) leaveProcess(t *testing.T) {
	t.Helper()
	h := thisMachine(Options{}).hierarchies()
	root := h.unified
	if root == "" {
		root = h.v1["pids"]
	}
	group := filepath.Join(root, l.owner.Cgroup, "container")
	if err := os.MkdirAll(group, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = os.Remove(group)
		_ = os.Remove(filepath.Dir(group))
	})
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Append(nil, cmd.Process.Pid), 0); err != nil {
		t.Fatal(err)
	}
}

func shell(t *testing.T, line string) {
	t.Helper()
	if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
}

// find lists the leaks that are of the leftovers; other tests may leave theirs.
func (l leftovers) find(t *testing.T, spare ...string) (leaks []Leak) {
	t.Helper()
	owner := func(dir string) Owner {
		if dir == l.dir {
			return l.owner
		}
		return Owner{DataDir: dir, LinkPrefix: "none"}
	}
	all, err := Leaks(t.Context(), owner, spare...)
	if err != nil {
		t.Fatal(err)
	}
	for _, leak := range all {
		if strings.Contains(leak.Name, l.dir) || strings.Contains(leak.Name, l.owner.Table) || strings.HasPrefix(leak.Name, l.owner.LinkPrefix) ||
			strings.HasPrefix(leak.Name, l.owner.Subnet.Addr().Next().String()) {
			leaks = append(leaks, leak)
		}
	}
	return leaks
}

// TestLeaksOfEachKind finds one leftover of each kind, and each is removed
// by the command beside it.
func TestLeaksOfEachKind(t *testing.T) {
	needRoot(t)
	l := leaveOneOfEach(t)
	leaks := l.find(t)
	var kinds []string
	for _, leak := range leaks {
		t.Logf("%s: %s", leak, leak.Fix)
		kinds = append(kinds, leak.Kind)
	}
	slices.Sort(kinds)
	want := []string{kindAddress, kindCgroup, kindLink, kindLoop, kindMount, kindMount, kindMount, kindTable, kindProcess}
	slices.Sort(want)
	if !slices.Equal(kinds, want) {
		t.Errorf("got %q; want %q", kinds, want)
	}
	if left := l.find(t, l.dir); len(left) > 0 {
		t.Errorf("got %v though they are spared", left)
	}
	for _, leak := range leaks {
		fix := func() ([]byte, error) {
			return exec.Command("sh", "-c", strings.ReplaceAll(leak.Fix, "sudo ", "")).CombinedOutput()
		}
		out, err := fix()
		for n := 0; err != nil && leak.Kind == kindCgroup && n < 100; n++ { // a killed process leaves its cgroup a moment later
			<-time.After(50 * time.Millisecond)
			out, err = fix()
		}
		// A link goes with its namespace, a loop device with its mount.
		if err != nil && leak.Kind != kindLink && leak.Kind != kindLoop {
			t.Errorf("%s: %v %s", leak.Fix, err, bytes.TrimSpace(out))
		}
	}
	if left := l.find(t); len(left) > 0 {
		t.Errorf("got %v after all was removed", left)
	}
}

func TestLeaksOfStoppedDaemon(t *testing.T) {
	needRoot(t)
	l := leaveOneOfEach(t)
	if err := os.WriteFile(filepath.Join(l.dir, "lock"), []byte(l.dir+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(l.dir, "db"), 0o700); err != nil {
		t.Fatal(err)
	}
	leaks := l.find(t)
	if len(leaks) != 1 || leaks[0].Kind != kindDaemon || !strings.Contains(leaks[0].Name, "1 process") {
		t.Errorf("got %v; want that the daemon ended", leaks)
	}
	lock, err := os.Open(filepath.Join(l.dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if leaks := l.find(t); len(leaks) > 0 {
		t.Errorf("got %v; want nothing while the daemon lives", leaks)
	}
}

func TestDemoDirectoryLeaks(t *testing.T) {
	needRoot(t)
	dir, err := os.MkdirTemp("", "cupola-demo-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	held, remove, err := TempDir("", "cupola-demo-")
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	l := leftovers{dir: dir, owner: Owner{DataDir: dir, Table: "none", LinkPrefix: "none", Subnet: netip.MustParsePrefix("10.9.0.0/16")}}
	if leaks := l.find(t); len(leaks) != 1 || leaks[0].Kind != kindDirectory {
		t.Errorf("got %v; want the directory", leaks)
	}
	l.dir = held
	if leaks := l.find(t); len(leaks) > 0 {
		t.Errorf("got %v; want nothing while a demo holds the directory", leaks)
	}
}
