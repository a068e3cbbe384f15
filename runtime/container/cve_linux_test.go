package container

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"cupola/runtime/contract"
)

// hostFile creates a host file with a word that no container may ever see.
func hostFile(t *testing.T, b *bench) (dir string) {
	t.Helper()
	dir = filepath.Join(filepath.Dir(b.rootfs), "victim")
	if err := errors.Join(os.Mkdir(dir, 0o777), os.WriteFile(filepath.Join(dir, "secret"), []byte("host"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// wantUntouched holds that a directory of hostFile is as it was, with nothing mounted there.
func wantUntouched(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	text, err2 := os.ReadFile(filepath.Join(dir, "secret"))
	if err := errors.Join(err, err2); err != nil || len(entries) != 1 || string(text) != "host" {
		t.Errorf("got %v with %q, %v; want the host's directory as it was", entries, text, err)
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), dir) {
		t.Errorf("got a mount on %s, %v", dir, err)
	}
}

// swap exchanges two names over and over until the test ends.
func swap(t *testing.T, a, b string) {
	t.Helper()
	end, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-end:
				ended <- nil
				return
			default:
				if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
					ended <- err
					return
				}
			}
		}
	}()
	t.Cleanup(func() {
		close(end)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// tried is what a container prints where it is started, which it need not be.
func (b *bench) tried(t *testing.T, spec Spec) (out string, started bool) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	spec.Stdout, spec.Process.UID, spec.Process.GID = w, 0, 0
	_, err = b.Start(t.Context(), spec)
	w.Close()
	if err == nil {
		b.wait(t, spec.ID)
	}
	if err := b.Remove(t.Context(), spec.ID); err != nil {
		t.Fatal(err)
	}
	text, err2 := io.ReadAll(r)
	if err2 != nil {
		t.Fatal(err2)
	}
	return string(text), err == nil
}

// kernelFile is a setting of the host that the tricks of 2025 wrote to through what runc mounts.
const kernelFile = "/proc/sys/kernel/core_pattern"

// TestImageOverKernelFiles starts images with links where runc makes, masks or writes to files of the kernel. The
// container may be refused; the host's setting stays, and what is masked shows nothing.
func TestImageOverKernelFiles(t *testing.T) { eachKind(t, testImageOverKernelFiles) }

func testImageOverKernelFiles(t *testing.T, kind Kind) {
	before, err := os.ReadFile(kernelFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ cve, name, to string }{
		{"CVE-2025-31133", "dev/null", kernelFile},
		{"CVE-2025-52565", "dev/console", kernelFile},
		{"CVE-2025-52565", "dev/pts", "/proc/sys/kernel"},
		{"CVE-2025-52565", "dev/pts/0", kernelFile},
		{"CVE-2025-52881", "proc/self/attr/exec", "/proc/sysrq-trigger"},
		{"CVE-2025-52881", "proc/self", "/proc/sys/kernel"},
		{"CVE-2019-16884", "proc/self/attr/exec", "/tmp/none"},
		{"CVE-2019-19921", "proc", "/tmp"},
		{"CVE-2023-28642", "proc", "../../proc"},
		{"CVE-2024-45310", "tmp", "/victim"},
	} {
		t.Run(c.cve+" "+c.name, func(t *testing.T) {
			b := newBench(t, kind)
			name := filepath.Join(b.rootfs, c.name)
			if err := errors.Join(os.RemoveAll(name), os.MkdirAll(filepath.Dir(name), 0o755), os.Symlink(c.to, name)); err != nil {
				t.Fatal(err)
			}
			for _, show := range []string{"/proc/keys", "/proc/timer_list", "/proc/interrupts"} {
				if out, _ := b.tried(t, b.spec("app", "cat", show)); out != "" && !strings.HasPrefix(out, "error:") {
					t.Errorf("%s shows %q; want it masked", show, out)
				}
			}
			if after, err := os.ReadFile(kernelFile); err != nil || string(after) != string(before) {
				t.Errorf("%s is %q, %v; want %q", kernelFile, after, err, before)
			}
		})
	}
}

// TestSwappedDuringStart has another container that shares the files of a root, or of a volume, swap directories for
// links while containers start: nothing is mounted on the host, nothing of it is seen, and what is masked stays so.
func TestSwappedDuringStart(t *testing.T) { eachKind(t, testSwappedDuringStart) }

func testSwappedDuringStart(t *testing.T, kind Kind) {
	for _, c := range []struct{ cve, name, to, mount string }{
		{"CVE-2021-30465", "home", "VICTIM", "/home/point"},
		{"CVE-2021-30465", "home", "/", "/home/VICTIM"},
		{"CVE-2024-45310", "home", "../victim", "/home/a/b/c"},
		{"CVE-2025-31133", "dev", "/proc/sys/kernel", ""},
		{"CVE-2025-52565", "dev", "VICTIM", ""},
		{"CVE-2025-52881", "proc", "VICTIM", ""},
	} {
		t.Run(c.cve+" "+c.name, func(t *testing.T) {
			b := newBench(t, kind)
			victim := hostFile(t, b)
			shown := filepath.Join(filepath.Dir(b.rootfs), "shown")
			link := filepath.Join(b.rootfs, "link")
			in := strings.NewReplacer("VICTIM", victim)
			if err := errors.Join(os.Mkdir(shown, 0o755), os.Symlink(in.Replace(c.to), link)); err != nil {
				t.Fatal(err)
			}
			give(t, b.rootfs)
			swap(t, filepath.Join(b.rootfs, c.name), link)
			before, err := os.ReadFile(kernelFile)
			if err != nil {
				t.Fatal(err)
			}
			started := 0
			for range 40 {
				spec := b.spec("app", "cat", "/proc/keys")
				if c.mount != "" {
					spec.Mounts = []Mount{{Source: shown, Destination: in.Replace(c.mount)}}
					spec.Process.Args = []string{"/bin/probe", "ls", in.Replace(c.mount)}
				}
				out, ok := b.tried(t, spec)
				if ok {
					started++
				}
				if strings.Contains(out, "secret") || c.mount == "" && out != "" && !strings.HasPrefix(out, "error:") {
					t.Errorf("got %q; want nothing of the host", out)
				}
			}
			t.Logf("%d of 40 started", started)
			wantUntouched(t, victim)
			if after, err := os.ReadFile(kernelFile); err != nil || string(after) != string(before) {
				t.Errorf("%s is %q, %v; want %q", kernelFile, after, err, before)
			}
		})
	}
}

// TestLeakedDescriptors is the rest of CVE-2024-21626: the working directory of a later process, a link in the image
// that leads to a descriptor, and a program of the host named through one.
func TestLeakedDescriptors(t *testing.T) { eachKind(t, testLeakedDescriptors) }

func testLeakedDescriptors(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	victim := hostFile(t, b)
	_, r := b.start(t, b.spec("app", "sleep"))
	waitLine(t, r, "ready\n")
	for fd := range 16 {
		at := fmt.Sprintf("/proc/self/fd/%d", fd)
		name := filepath.Join(b.rootfs, "fd"+strconv.Itoa(fd))
		if err := os.Symlink(at, name); err != nil {
			t.Fatal(err)
		}
		for _, cwd := range []string{at, at + "/..", "/fd" + strconv.Itoa(fd)} {
			for _, p := range []Process{
				{Args: []string{"/bin/probe", "cat", "../../.." + victim + "/secret"}, Cwd: cwd},
				{Args: []string{at + "/../../../bin/ls", victim}},
			} {
				text := execText(t, b, p)
				if strings.Contains(text, "host") || strings.Contains(text, "secret") {
					t.Errorf("CVE-2024-21626: %s and %q: got %q", cwd, p.Args, text)
				}
			}
		}
	}
}

// execText is what a further process of the container app prints, or why there is none.
func execText(t *testing.T, b *bench, p Process) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	x, err := b.Exec(t.Context(), "app", p, Stdio{Out: w})
	w.Close()
	if err != nil {
		return "refused"
	}
	if _, err := x.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	text := make([]byte, 1000)
	n, _ := r.Read(text)
	return string(text[:n])
}

// TestNegativeGroups has a program that is set-gid read a file that is closed to the user's own group alone, which the
// missing supplementary group allowed: CVE-2022-36109, CVE-2022-2990, CVE-2022-2995, CVE-2023-25173.
func TestNegativeGroups(t *testing.T) { eachKind(t, testNegativeGroups) }

func testNegativeGroups(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	probe, err := os.ReadFile(filepath.Join(b.rootfs, "bin/probe"))
	if err != nil {
		t.Fatal(err)
	}
	base := int(testIDs.Base)
	for name, f := range map[string]struct {
		text []byte
		gid  int
		mode uint32
	}{"bin/setgid": {probe, 3000, 0o2755}, "etc/closed": {[]byte("closed"), 2000, 0o604}} {
		path := filepath.Join(b.rootfs, name)
		if err := errors.Join(os.WriteFile(path, f.text, 0o600), os.Chown(path, base, base+f.gid), unix.Chmod(path, f.mode)); err != nil {
			t.Fatal(err)
		}
	}
	for _, program := range []string{"/bin/probe", "/bin/setgid"} {
		spec := b.spec("app")
		spec.Process.Args = []string{program, "cat", "/etc/closed"}
		if out, _ := b.output(t, spec); !strings.Contains(out, "permission denied") {
			t.Errorf("%s: got %q; want the file closed to the group", program, out)
		}
	}
	other := b.spec("app", "cat", "/etc/closed")
	other.Process.GID = 2001
	if out, _ := b.output(t, other); out != "closed" {
		t.Errorf("got %q; want the file open to others", out)
	}
}

// TestManyGroups holds that an image whose user is in more groups than the kernel takes (CVE-2026-47262) is refused, and
// that the next start is as ever.
func TestManyGroups(t *testing.T) { eachKind(t, testManyGroups) }

func testManyGroups(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	spec := b.spec("many", "echo", "x")
	for n := range uint32(150_000) {
		spec.Process.Groups = append(spec.Process.Groups, n%60_000)
	}
	if _, err := b.Start(t.Context(), spec); err == nil {
		if exit := b.wait(t, "many"); exit.Code == 0 {
			t.Error("CVE-2026-47262: got the program run; want its groups refused")
		}
	}
	if err := b.Remove(t.Context(), "many"); err != nil {
		t.Error(err)
	}
	if out, exit := b.output(t, b.spec("next", "echo", "x")); out != "x\n" || exit.Code != 0 {
		t.Errorf("got %q, %+v", out, exit)
	}
}

// TestLongMountSources holds that mounts whose names fill more than a netlink attribute's 64 KiB displace none of what
// the container is kept in: CVE-2021-43784.
func TestLongMountSources(t *testing.T) { eachKind(t, testLongMountSources) }

func testLongMountSources(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	source := filepath.Join(filepath.Dir(b.rootfs), strings.Repeat(strings.Repeat("s", 240)+"/", 12))
	if err := os.MkdirAll(source, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"/proc/self/status":  "CapBnd:\t0000000000000000",
		"/proc/self/uid_map": fmt.Sprint(testIDs.Base),
		"/proc/1/cmdline":    contract.ProgramDir,
	} {
		spec := b.spec("app", "cat", file)
		for n := range 30 {
			spec.Mounts = append(spec.Mounts, Mount{Source: source, Destination: "/home/" + strconv.Itoa(n)})
		}
		if out, _ := b.output(t, spec); !strings.Contains(out, want) {
			t.Errorf("CVE-2021-43784: %s: got %q; want %q", file, out, want)
		}
	}
}

// TestAbstractSockets holds that no socket of the host without a file can be connected to: CVE-2020-15257.
func TestAbstractSockets(t *testing.T) { eachKind(t, testAbstractSockets) }

func testAbstractSockets(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	name := "cupolatest-" + b.cfg.CgroupParent
	l, err := net.Listen("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, uid := range []uint32{0, 2000} {
		spec := b.spec("app", "connect", "@"+name)
		spec.Process.UID, spec.Process.GID = uid, uid
		if out, _ := b.output(t, spec); !strings.Contains(out, "connection refused") {
			t.Errorf("CVE-2020-15257: got %q; want no such socket", out)
		}
	}
}
