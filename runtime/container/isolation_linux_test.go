package container

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"cupola/runtime/users"
)

// isolation probes the rows of the table in docs/security.md, by their first column.
func isolation() map[string]func(*testing.T, *bench) {
	return map[string]func(*testing.T, *bench){
		"user namespace": func(t *testing.T, b *bench) {
			spec := b.spec("app", "cat", "/proc/self/uid_map")
			spec.Users = IDMap{Base: 0x78020000, Size: users.Size}
			if out, _ := b.output(t, spec); strings.Join(strings.Fields(out), " ") != fmt.Sprintf("0 %d %d", 0x78020000, users.Size) {
				t.Errorf("got %s", out)
			}
		},
		"limits counted by user": func(t *testing.T, _ *bench) { TestLimitsOfUsersAreItsOwn(t) },
		"mount, PID, IPC, UTS and network namespaces": func(t *testing.T, b *bench) {
			app, r := b.start(t, b.spec("app", "sleep"))
			waitLine(t, r, "ready\n")
			for _, ns := range []string{"mnt", "pid", "ipc", "uts", "net"} {
				ours, err := os.Readlink("/proc/self/ns/" + ns)
				theirs, err2 := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", app.PID, ns))
				if err != nil || err2 != nil || ours == theirs {
					t.Errorf("%s: got %s and %s, %v, %v", ns, ours, theirs, err, err2)
				}
			}
		},
		"cgroup namespace": func(t *testing.T, b *bench) {
			out, _ := b.output(t, b.spec("app", "cat", "/proc/self/cgroup"))
			for line := range strings.Lines(out) {
				if !strings.HasSuffix(line, ":/\n") {
					t.Errorf("got %q; want all cgroups to be the root", line)
				}
			}
		},
		"where the helper programs lie (`/tmp/lifecycle`)": func(t *testing.T, b *bench) {
			for _, m := range mountsOf(t, b) {
				if m[4] == HelperMount && m[3] == "/" && !strings.Contains(strings.Join(m, " "), b.cfg.HelperDir) {
					return
				}
			}
			t.Errorf("got no mount at %s whose root is /", HelperMount)
		},
		"capabilities of an app": wantStatus(2000, "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000"),
		// CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SETPCAP NET_BIND_SERVICE SYS_CHROOT SETFCAP
		"capabilities of root in the container": wantStatus(0, "CapEff:\t00000000800405fb", "CapBnd:\t00000000800405fb"),
		"no_new_privs":                          wantStatus(0, "NoNewPrivs:\t1"),
		"seccomp":                               wantStatus(0, "Seccomp:\t2"),
		"masked kernel files": func(t *testing.T, b *bench) {
			for _, path := range []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug", "/proc/interrupts"} {
				if _, err := os.Stat(path); err != nil {
					continue // the kernel has none
				}
				if out, _ := b.output(t, b.spec("app", "cat", path)); out != "" {
					t.Errorf("%s: got %.60q; want it empty", path, out)
				}
			}
			wantEmptyDir(t, b, "/sys/firmware")
		},
		"disks of the machine and of others": func(t *testing.T, b *bench) {
			for _, dir := range []string{"/sys/block", "/sys/class/block", "/sys/dev/block", "/proc/fs"} {
				wantEmptyDir(t, b, dir)
			}
			for _, path := range []string{"/proc/partitions", "/proc/diskstats", "/proc/swaps"} {
				if out, _ := b.output(t, b.spec("app", "cat", path)); out != "" {
					t.Errorf("%s: got %.60q; want it empty", path, out)
				}
			}
		},
		"kernel settings": wantMounts("/proc/sys", "ro,nosuid,nodev,noexec"),
		"sysfs": func(t *testing.T, b *bench) {
			wantMounts("/sys", "ro,nosuid,nodev,noexec")(t, b)
			wantEmptyDir(t, b, "/sys/class/net")
		},
		"devices": func(t *testing.T, b *bench) {
			out, _ := b.output(t, b.spec("app", "ls", "/dev"))
			got := strings.Fields(out)
			slices.Sort(got)
			if want := "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero"; strings.Join(got, " ") != want {
				t.Errorf("got %v; want %s", got, want)
			}
		},
		"mounts": func(t *testing.T, b *bench) {
			for _, m := range mountsOf(t, b) {
				if strings.HasSuffix(strings.Join(m, " "), "nr_inodes=1") || strings.Contains(strings.Join(m, " "), "nr_inodes=1,") {
					continue // masks a directory, and has room for no file
				}
				if m[4] != "/" && (!strings.Contains(m[5], "nosuid") || !strings.Contains(m[5], "nodev") && !strings.HasPrefix(m[4], "/dev")) && !strings.Contains(m[3], "null") {
					t.Errorf("got %v; want nosuid and nodev", m)
				}
			}
		},
		"core dumps": func(t *testing.T, b *bench) {
			out, _ := b.output(t, b.spec("app", "cat", "/proc/self/limits"))
			_, after, _ := strings.Cut(out, "Max core file size")
			if f := strings.Fields(after); len(f) < 2 || f[0] != "0" || f[1] != "0" {
				t.Errorf("got %s", out)
			}
		},
	}
}

func wantStatus(uid uint32, want ...string) func(*testing.T, *bench) {
	return func(t *testing.T, b *bench) {
		spec := b.spec("app", "cat", "/proc/self/status")
		spec.Process.UID, spec.Process.GID = uid, uid
		status, _ := b.output(t, spec)
		for _, w := range want {
			if !strings.Contains(status, w) {
				t.Errorf("got no %q in\n%s", w, status)
			}
		}
	}
}

func wantEmptyDir(t *testing.T, b *bench, dir string) {
	t.Helper()
	if out, _ := b.output(t, b.spec("app", "ls", dir)); out != "" {
		t.Errorf("%s: got %.60q; want it empty", dir, out)
	}
}

// mountsOf are the fields of a container's mountinfo.
func mountsOf(t *testing.T, b *bench) (all [][]string) {
	out, _ := b.output(t, b.spec("app", "cat", "/proc/self/mountinfo"))
	for line := range strings.Lines(out) {
		all = append(all, strings.Fields(line))
	}
	return all
}

func wantMounts(point, options string) func(*testing.T, *bench) {
	return func(t *testing.T, b *bench) {
		for _, m := range mountsOf(t, b) {
			if m[4] == point && strings.HasPrefix(m[5], options) {
				return
			}
		}
		t.Errorf("got no mount at %s with %s", point, options)
	}
}

// TestIsolationTable has each row of docs/security.md be probed, and each probe
// have its row.
func TestIsolationTable(t *testing.T) {
	doc, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	// The root is mounted by package rootfs, whose TestMountForOtherUsers looks at it.
	rows := map[string]bool{"names of layers": false}
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			continue
		}
		if name := strings.TrimSpace(cells[1]); name != "what" && strings.Trim(name, "-") != "" {
			rows[name] = true
		}
	}
	if !rows["names of layers"] {
		t.Error("docs/security.md has no row of layers' names")
	}
	delete(rows, "names of layers")
	probes := isolation()
	if got, want := slices.Sorted(maps.Keys(rows)), slices.Sorted(maps.Keys(probes)); !slices.Equal(got, want) {
		t.Errorf("docs/security.md has the rows %q; want %q", got, want)
	}
	b := newBench(t)
	for name, probe := range probes {
		t.Run(name, func(t *testing.T) {
			probe(t, b)
			if err := b.Remove(t.Context(), "app"); err != nil {
				t.Error(err)
			}
		})
	}
}
