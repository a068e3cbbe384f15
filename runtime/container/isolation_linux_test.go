package container

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cupola/runtime/users"
)

// probedUsers are the users of the container that is probed.
var probedUsers = IDMap{Base: 0x78020000, Size: users.Size}

// isolation is what the probe may find in a container of cupola, by the rows of the table in docs/security.md.
func isolation() map[string][]string {
	return map[string][]string{
		"user namespace": {fmt.Sprintf("own: user, the host's: none, 0>%d*%d", probedUsers.Base, probedUsers.Size)},
		"mount, PID, IPC, UTS and network namespaces": {"own: mnt pid ipc uts net, the host's: none"},
		"cgroup namespace":                            {"own: cgroup, the host's: none, no names of the host's in /proc/self/cgroup"},
		"time namespace":                              {"own: none, the host's: time", "own: none, the host's: none"}, // the kernel may have none
		"capabilities of an app":                      {"0 effective (0000000000000000), 0 inheritable (0000000000000000), 0 bounding (0000000000000000)"},
		// CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SETPCAP NET_BIND_SERVICE SYS_CHROOT SETFCAP
		"capabilities of root in the container": {"11 effective (00000000800405fb), 0 inheritable (0000000000000000), 11 bounding (00000000800405fb)"},
		"no_new_privs":                          {"1"},
		"seccomp":                               {"2"},
		"risky system calls":                    {"process_vm_readv ptrace"},
		"AppArmor":                              {"the kernel has none", "unconfined"},
		"masked kernel files":                   {"none"},
		"disks of the machine and of others":    {"none"},
		"kernel settings":                       {"read-only, files to write to below: none"},
		"sysfs":                                 {"read-only, files to write to below: none; network links of others: none"},
		"devices":                               {"fd full null ptmx pts random shm stderr stdin stdout tty urandom zero"},
		"mounts":                                {"/-nosuid-nodev"}, // a plain directory here; package rootfs mounts those of apps nodev
		"core dumps":                            {"at most 0 bytes"},
		"mounts that show host paths":           {"none"},
	}
}

// elsewhere are the rows that the probe cannot look at here, and the tests that do.
func elsewhere() map[string]string {
	return map[string]string{
		"limits counted by user": "TestLimitsOfUsersAreItsOwn",       // takes two containers
		"names of layers":        "TestMountForOtherUsers in rootfs", // which mounts the root
	}
}

// probed runs the probe as a user of a container and as its root.
func (b *bench) probed(t *testing.T) map[string]string {
	t.Helper()
	links, err := filepath.Glob("/proc/self/ns/*")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"isolation"}
	for _, link := range links {
		to, err := os.Readlink(link)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, to)
	}
	facts := map[string]string{}
	for _, uid := range []uint32{2000, 0} {
		spec := b.spec("app", args...)
		spec.Users, spec.Process.UID, spec.Process.GID = probedUsers, uid, uid
		out, exit := b.output(t, spec)
		if exit.Code != 0 {
			t.Fatalf("user %d: got %+v and\n%s", uid, exit, out)
		}
		maps.Copy(facts, parseFacts(out))
	}
	return facts
}

// parseFacts reads lines "row: fact", as the probe prints them.
func parseFacts(text string) map[string]string {
	facts := map[string]string{}
	for line := range strings.Lines(text) {
		if row, fact, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && line[0] != '#' {
			facts[row] = fact
		}
	}
	return facts
}

// TestIsolationTable probes each row of docs/security.md from inside a container.
func TestIsolationTable(t *testing.T) { eachKind(t, testIsolationTable) }

func testIsolationTable(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	got := b.probed(t)
	for row, want := range isolation() {
		if !slices.Contains(want, got[row]) {
			t.Errorf("%s: got %q; want %q", row, got[row], want)
		}
	}
}

// TestIsolationRows holds that docs/security.md, the probe's wants here and what it found in other engines' containers
// have the same rows, and that no cell is empty.
func TestIsolationRows(t *testing.T) {
	doc, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || strings.Trim(cells[1], "- ") == "" || strings.TrimSpace(cells[1]) == "what" {
			continue
		}
		rows = append(rows, strings.TrimSpace(cells[1]))
		for _, cell := range cells[2:5] {
			if strings.TrimSpace(cell) == "" || strings.Contains(cell, "not compared") {
				t.Errorf("docs/security.md: %s: got the cell %q; want what is known", cells[1], cell)
			}
		}
	}
	slices.Sort(rows)
	want := slices.Sorted(maps.Keys(isolation()))
	want = slices.Sorted(slices.Values(append(want, slices.Collect(maps.Keys(elsewhere()))...)))
	if !slices.Equal(rows, want) {
		t.Errorf("docs/security.md: got the rows\n%q; want\n%q", rows, want)
	}
	found, err := filepath.Glob("testdata/isolation/*.txt")
	if err != nil || len(found) < 2 {
		t.Fatalf("got %v, %v; want what the probe found in Docker's and Garden's containers", found, err)
	}
	for _, name := range found {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(parseFacts(string(text)))); !slices.Equal(got, want) {
			t.Errorf("%s: got the rows\n%q; want\n%q", name, got, want)
		}
		if base := filepath.Base(name); !strings.Contains(string(doc), base) {
			t.Errorf("docs/security.md does not name %s", base)
		}
	}
}
