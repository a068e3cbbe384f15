package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cupola/runtime/contract"
)

// TestHostileProcess holds that root and a user of a container get nowhere: neither to a release agent (CVE-2022-0492)
// nor to the cgroups themselves (CVE-2023-25809).
func TestHostileProcess(t *testing.T) { eachKind(t, testHostileProcess) }

func testHostileProcess(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	for _, uid := range []uint32{0, 2000} {
		spec := b.spec("uid-"+strconv.Itoa(int(uid)), "hostile")
		spec.Process.UID = uid
		out, exit := b.output(t, spec)
		if exit.Code != 0 || strings.Count(out, "\n") < 60 {
			t.Fatalf("uid %d: got %+v and\n%s; want every attempt told", uid, exit, out)
		}
		for line := range strings.Lines(out) {
			name, result, _ := strings.Cut(strings.TrimSpace(line), ": ")
			if result == "<nil>" {
				t.Errorf("uid %d: %s succeeded", uid, name)
			}
			if want := specialErrors()[name]; want != "" && result != want {
				t.Errorf("uid %d: %s: got %s; want %s", uid, name, result, want)
			}
		}
	}
}

// specialErrors are those on which C libraries and programs rely.
func specialErrors() map[string]string {
	return map[string]string{
		"clone3":           "function not implemented",
		"new call":         "function not implemented",
		"keyctl":           "operation not permitted",
		"clone user":       "operation not permitted",
		"socket vsock":     "address family not supported by protocol",
		"socket netfilter": "protocol not supported",
		"read /proc/keys":  "empty",
		"kill another":     "no such process",
	}
}

// TestPosture is also that no process inherits capabilities: CVE-2022-24769, CVE-2022-29162.
func TestPosture(t *testing.T) { eachKind(t, testPosture) }

func testPosture(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	status, _ := b.output(t, b.spec("status", "cat", "/proc/self/status"))
	for _, want := range []string{
		"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
		"CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2", "Uid:\t2000\t2000",
		"Groups:\t \n",
	} {
		if !strings.Contains(status, want) {
			t.Errorf("got no %q in\n%s", want, status)
		}
	}
	able := b.spec("able", "cat", "/proc/self/status")
	able.Process.Capabilities = []string{"NET_BIND_SERVICE", "SYS_ADMIN"} // no process gets the second
	status, _ = b.output(t, able)
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if want := set + ":\t0000000000000400"; !strings.Contains(status, want) {
			t.Errorf("got no %q in\n%s", want, status)
		}
	}
	root := b.spec("root", "cat", "/proc/self/status")
	root.Process.UID, root.Process.GID = 0, 0
	status, _ = b.output(t, root)
	for _, want := range []string{"CapInh:\t0000000000000000", "CapEff:\t00000000800405fb", "CapBnd:\t00000000800405fb", "CapAmb:\t0000000000000000"} {
		if !strings.Contains(status, want) {
			t.Errorf("got no %q in\n%s", want, status)
		}
	}
}

// TestView is about what a container sees of the host.
func TestView(t *testing.T) { eachKind(t, testView) }

func testView(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	for path, want := range map[string]string{
		"/dev":                     "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero",
		"/sys/class/net":           "",
		"/sys/fs/cgroup":           "",
		"/proc/self/fd":            "0 1 2 3 4 5 6", // 3 and more are the lister's own
		contract.ProgramDir:        "init seccomp.bpf",
		"/sys/kernel/debug":        "",
		"/proc/sys/fs/binfmt_misc": "",
	} {
		if path == "/sys/fs/cgroup" && b.shared.v2 {
			continue // its own
		}
		out, _ := b.output(t, b.spec("ls", "ls", path))
		got := strings.Fields(out)
		slices.Sort(got)
		if strings.HasSuffix(path, "/fd") {
			if len(got) > 7 {
				t.Errorf("%s: got %v; want no file but the program's own", path, got)
			}
			continue
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v; want %s", path, got, want)
		}
	}
	out, _ := b.output(t, b.spec("proc", "ls", "/proc"))
	processes := slices.DeleteFunc(strings.Fields(out), func(name string) bool { return name[0] < '0' || name[0] > '9' })
	if len(processes) != 2 || processes[0] != "1" {
		t.Errorf("got processes %v in /proc; want the container's init and its app alone", processes)
	}
}

// TestHostileImage starts root file systems made to have the daemon act on the
// host: it may refuse them, and must touch nothing outside.
func TestHostileImage(t *testing.T) { eachKind(t, testHostileImage) }

func testHostileImage(t *testing.T, kind Kind) {
	link := func(target, name string) func(root string) error {
		return func(root string) error {
			if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
				return err
			}
			return os.Symlink(target, filepath.Join(root, name))
		}
	}
	for name, spoil := range map[string]func(root string) error{
		"CVE-2026-41579 dev link":  link("/victim", "dev"),
		"CVE-2023-27561 proc link": link("/victim", "proc"),
		"sys link":                 link("/victim", "sys"),
		"tmp link":                 link("/victim", "tmp"),
		"up link":                  link("../../../../../../../../victim", "dev"),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, kind)
			victim := filepath.Join(filepath.Dir(b.rootfs), "victim")
			if err := os.Mkdir(victim, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := spoil(b.rootfs); err != nil {
				t.Fatal(err)
			}
			spec := b.spec("app", "echo", "x")
			if _, err := b.Start(t.Context(), spec); err == nil {
				b.wait(t, "app")
			}
			for _, dir := range []string{"/victim", victim} {
				if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
					t.Errorf("got %v in %s; want it untouched", entries, dir)
				}
			}
		})
	}
}

// TestHostileMountPoint binds directories where the image has links that lead to
// the host, and has a working directory made behind one: CVE-2021-30465,
// CVE-2024-45310, CVE-2026-55686.
func TestHostileMountPoint(t *testing.T) { eachKind(t, testHostileMountPoint) }

func testHostileMountPoint(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	up := filepath.Dir(b.rootfs)
	victim, shown := filepath.Join(up, "victim"), filepath.Join(up, "shown")
	for _, dir := range []string{victim, shown} {
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"abs": victim, "up": "../../../../../../../.." + victim, "near": "../victim"} {
		if err := os.Symlink(to, filepath.Join(b.rootfs, name)); err != nil {
			t.Fatal(err)
		}
		for _, point := range []string{"/" + name, "/" + name + "/deep/er"} {
			spec := b.spec("mount", "ls", "/")
			spec.Mounts = []Mount{{Source: shown, Destination: point}}
			spec.Process.Cwd = "/" + name + "/made"
			if _, err := b.Start(t.Context(), spec); err == nil {
				b.wait(t, "mount")
			}
			if err := b.Remove(t.Context(), "mount"); err != nil {
				t.Error(err)
			}
			if entries, err := os.ReadDir(victim); err != nil || len(entries) > 0 {
				t.Errorf("%s: got %v, %v; want the host's directory as it was", point, entries, err)
			}
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), victim) {
		t.Errorf("got a mount on %s, %v", victim, err)
	}
}

// TestProgramThatIsTheEngine starts an image whose program is a link to whatever
// executes it, so that it might be written over from within: CVE-2019-5736.
func TestProgramThatIsTheEngine(t *testing.T) { eachKind(t, testProgramThatIsTheEngine) }

func testProgramThatIsTheEngine(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	init := filepath.Join(b.cfg.HelperDir, "init")
	before, err := os.ReadFile(init)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc/self/exe", filepath.Join(b.rootfs, "bin/self")); err != nil {
		t.Fatal(err)
	}
	spec := b.spec("self")
	spec.Process.Args = []string{"/bin/self", "--seccomp", "/dev/null", "--", "/bin/probe", "ls", "/"}
	spec.Process.UID, spec.Process.GID = 0, 0
	if _, err := b.Start(t.Context(), spec); err == nil {
		b.wait(t, "self")
	}
	hostile := b.spec("hostile", "hostile")
	hostile.Process.UID, hostile.Process.GID = 0, 0
	if out, _ := b.output(t, hostile); strings.Contains(out, "write "+contract.Init+": <nil>") {
		t.Errorf("the helper could be written to:\n%s", out)
	}
	after, err := os.ReadFile(init)
	if err != nil || string(after) != string(before) {
		t.Errorf("the engine's program is another one, %v", err)
	}
}

// TestCwdInDescriptor is CVE-2024-21626: a working directory that is a file
// descriptor left open on the host.
func TestCwdInDescriptor(t *testing.T) { eachKind(t, testCwdInDescriptor) }

func testCwdInDescriptor(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	for fd := 3; fd < 20; fd++ {
		spec := b.spec("cwd", "ls", "..")
		spec.Process.Cwd = fmt.Sprintf("/proc/self/fd/%d", fd)
		if _, err := b.Start(t.Context(), spec); err == nil {
			t.Errorf("descriptor %d: got no error", fd)
			b.wait(t, "cwd")
			_ = b.Remove(t.Context(), "cwd")
		}
	}
	if states, err := b.List(); err != nil || len(states) > 0 {
		t.Errorf("got %v, %v; want nothing left", states, err)
	}
}

func TestLimits(t *testing.T) { eachKind(t, testLimits) }

func testLimits(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	hog := b.spec("hog", "hog", "64")
	hog.Limits.MemoryBytes = 32 << 20
	out, exit := b.output(t, hog)
	if out != "" || !exit.OOM || exit.Code != 137 {
		t.Errorf("got %q, %+v; want killed for memory", out, exit)
	}
	fork := b.spec("fork", "fork")
	fork.Limits.Pids = 40
	out, exit = b.output(t, fork)
	if !strings.Contains(out, "resource temporarily unavailable") || exit.OOM {
		t.Errorf("got %q, %+v; want the limit of processes told", out, exit)
	}
}

// TestMountPointsThatAreRefused has volumes mounted where they would hide what the kernel tells of a process, or the root.
func TestMountPointsThatAreRefused(t *testing.T) { eachKind(t, testMountPointsThatAreRefused) }

func testMountPointsThatAreRefused(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	if err := errors.Join(os.Symlink("/proc", filepath.Join(b.rootfs, "link")), os.Symlink("/", filepath.Join(b.rootfs, "top"))); err != nil {
		t.Fatal(err)
	}
	for destination, want := range map[string]string{
		"/proc/self/attr": "inside /proc", "/link/sys": "inside /proc", "/home/../link/1": "inside /proc", "/": "root", "/top": "root",
	} {
		spec := b.spec("app", "echo", "x")
		spec.Mounts = []Mount{{Source: b.cfg.HelperDir, Destination: destination}}
		if _, err := b.Start(t.Context(), spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want it refused as %s", destination, err, want)
		}
	}
}
