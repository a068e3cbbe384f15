package container

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"cupola/runtime/thread"
)

// TestKindsMakeTheSame compares all that the kernel says about the processes of a container that each kind of Engine
// has started, and what they see.
func TestKindsMakeTheSame(t *testing.T) {
	b := newBench(t, Runc)
	if err := CheckLaunch(); err != nil {
		t.Skip(err)
	}
	shown := filepath.Join(filepath.Dir(b.rootfs), "shown")
	if err := os.MkdirAll(filepath.Join(shown, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(shown, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	netNS := emptyNetNS(t)
	for name, change := range map[string]func(*Spec){
		"user": func(*Spec) {},
		"root": func(s *Spec) { s.Process.UID, s.Process.GID, s.Process.Groups = 0, 0, nil },
		"user with capabilities": func(s *Spec) {
			s.Process.Capabilities, s.Process.Nofile, s.Process.Core, s.Process.Nproc = []string{"NET_BIND_SERVICE", "SYS_ADMIN"}, 512, 1, 99
		},
		"mounts": func(s *Spec) {
			s.Lifecycle, s.Process.Cwd = true, "/new/dir"
			s.Mounts = []Mount{
				{Source: shown, Destination: "/a/b"}, {Source: shown, Destination: "/etc", ReadOnly: true, NoExec: true},
				{Source: filepath.Join(shown, "file"), Destination: "/c/file"}, {Destination: "/home"}, {Source: shown, Destination: "/d", Recursive: true},
			}
		},
		"network and output": func(s *Spec) {
			s.NetNS, s.Stdout, s.Process.Env = netNS, os.Stdout, []string{"A=1", "A=2", "HOME=", "B="}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var views [2]map[string]string
			for n, kind := range []Kind{Runc, Launch} {
				b.cfg.Kind = kind
				b.Engine = b.reopen(t)
				spec := b.spec("app", "sleep")
				spec.Process.Groups = []uint32{7, 8}
				spec.Limits = Limits{MemoryBytes: 64 << 20, Pids: 50}
				change(&spec)
				views[n] = b.view(t, spec)
			}
			for _, key := range slices.Sorted(maps.Keys(views[0])) {
				if views[0][key] != views[1][key] {
					t.Errorf("%s: got by runc\n%s\nand by launch\n%s", key, views[0][key], views[1][key])
				}
			}
			if len(views[0]) != len(views[1]) || len(views[0]) < 40 {
				t.Errorf("got %d and %d facts; want the same number, and at least 40", len(views[0]), len(views[1]))
			}
		})
	}
}

// emptyNetNS is the path of a network namespace of the host's.
func emptyNetNS(t *testing.T) string {
	t.Helper()
	var f *os.File
	err := thread.Throwaway("container", func() (err error) {
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			f, err = os.Open("/proc/thread-self/ns/net")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return openPath(f)
}

// idle is the status of a Go program whose runtime has set up its signals and waits.
var idle = regexp.MustCompile(`(?s)State:\tS .*SigBlk:\t0+\n.*SigCgt:\tf`)

// view starts a container, and returns what is to be seen of it without what differs between any two.
func (b *bench) view(t *testing.T, spec Spec) map[string]string {
	t.Helper()
	s, err := b.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Remove(t.Context(), spec.ID); err != nil {
			t.Error(err)
		}
	}()
	var app int
	eventually(t, func() string {
		for _, pid := range b.tree.pids(spec.ID) {
			dir := "/proc/" + strconv.Itoa(pid)
			name, _ := os.ReadFile(dir + "/comm")
			status, _ := os.ReadFile(dir + "/status")
			if app = pid; pid != s.PID && string(name) == "probe\n" && idle.Match(status) {
				return ""
			}
		}
		return "no app that catches signals"
	})
	all := map[string]string{}
	for name, pid := range map[string]int{"init": s.PID, "app": app} {
		maps.Copy(all, processView(t, name, pid, s.PID))
	}
	for _, dir := range []string{"/", "/dev", "/dev/pts", "/dev/shm", "/sys", "/sys/class", "/sys/block", "/sys/class/net", "/proc/sys/kernel", "/proc/1/fd", "/home", "/etc"} {
		out, _ := b.exec(t, spec.ID, "ls", dir)
		all["ls "+dir] = out
	}
	return all
}

// processView is what the host sees of a process of the container of init.
func processView(t *testing.T, name string, pid, init int) map[string]string {
	t.Helper()
	dir := "/proc/" + strconv.Itoa(pid) + "/"
	all := map[string]string{}
	for _, file := range []string{
		"status", "mountinfo", "cgroup", "limits", "attr/current", "oom_score_adj", "uid_map", "gid_map", "setgroups", "environ", "cmdline", "comm",
		"sessionid", "loginuid", "personality", "timerslack_ns", "coredump_filter", "timens_offsets", "net/dev",
	} {
		text, err := os.ReadFile(dir + file)
		if err != nil {
			text = []byte(err.Error())
		}
		all[name+" "+file] = plain(file, string(text), pid, init)
	}
	links, err := filepath.Glob(dir + "fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range append(links, dir+"cwd", dir+"root", dir+"exe") {
		to, _ := os.Readlink(link)
		all[name+" "+strings.TrimPrefix(link, dir)] = regexp.MustCompile(`\[\d+\]`).ReplaceAllString(to, "")
	}
	spaces, err := os.ReadDir(dir + "ns")
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range spaces {
		all[name+" ns/"+ns.Name()] = namespaceView(t, dir, ns.Name())
	}
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for what, field := range map[string]string{"group": fields[2], "session": fields[3], "terminal": fields[4], "nice": fields[16], "policy": fields[38]} {
		all[name+" "+what] = strings.ReplaceAll(field, strconv.Itoa(pid), "itself")
	}
	return all
}

// namespaceView says whether a namespace is the host's, and who has rights over it.
func namespaceView(t *testing.T, dir, name string) string {
	t.Helper()
	const getUserNS, getOwner = 0xb701, 0xb704
	own, _ := os.Readlink(dir + "ns/" + name)
	hosts, _ := os.Readlink("/proc/self/ns/" + name)
	f, err := os.Open(dir + "ns/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	view := fmt.Sprintf("the host's: %t", own == hosts)
	if name == "user" {
		var uid uint32
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), getOwner, uintptr(unsafe.Pointer(&uid)))
		return fmt.Sprint(view, ", of user ", uid, errno)
	}
	fd, err := unix.IoctlRetInt(int(f.Fd()), getUserNS)
	if err != nil {
		return fmt.Sprint(view, ", ", err)
	}
	owner := os.NewFile(uintptr(fd), "owner")
	defer owner.Close()
	has, err := owner.Stat()
	user, err2 := os.Stat(dir + "ns/user")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	return fmt.Sprintf("%s, of the container's users: %t", view, os.SameFile(has, user))
}

// plain leaves out of a file in /proc what differs between any two processes.
func plain(file, text string, pid, init int) string {
	switch file {
	case "status":
		var kept []string
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(line, ":")
			if fields := strings.Fields(value); strings.HasPrefix(name, "NS") { // the last is the one in the container
				line = fmt.Sprintf("%s: of %d namespaces, first: %t\n", name, len(fields), fields[len(fields)-1] == "1")
			}
			// Numbers of processes, memory, waits, and signals queued by the user.
			if !regexp.MustCompile(`^(Pid|Tgid|PPid|Vm.*|Rss.*|.*ctxt_switches|SigQ|State|FDSize|THP_enabled|Threads)$`).MatchString(name) {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "")
	case "mountinfo":
		return plainMounts(text)
	}
	return strings.NewReplacer("/proc/"+strconv.Itoa(pid), "/proc/self", "/proc/"+strconv.Itoa(init), "/proc/init").Replace(text)
}

// plainMounts names each mount's parent by its mount point, and numbers devices without a disk. The order is by mount
// points: the kernel's is that in which mounts were made, and the launcher makes binds before file systems.
func plainMounts(text string) string {
	points, devices := map[string]string{}, map[string]string{}
	var mounts [][]string
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		mounts = append(mounts, f)
		points[f[0]] = f[4]
	}
	slices.SortStableFunc(mounts, func(a, b []string) int { return strings.Compare(a[4], b[4]) })
	var lines []string
	for _, f := range mounts {
		if strings.HasPrefix(f[2], "0:") {
			if devices[f[2]] == "" {
				devices[f[2]] = fmt.Sprint("#", len(devices)+1)
			}
			f[2] = devices[f[2]]
		}
		f[0], f[1] = "at "+f[4], "on "+points[f[1]]
		lines = append(lines, strings.Join(f, " "))
	}
	return strings.Join(lines, "\n")
}
