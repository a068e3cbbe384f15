package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fact is what one row of docs/security.md is in the container that the probe runs in.
type fact struct {
	row  string
	find func() string
}

// isolation prints one line "row: fact" for each row, of what a user of the container can do; for user 0, what root can do
// beyond that. Its arguments are the host's namespaces, as the links in /proc/self/ns name them. It knows nothing of the
// engine that started the container.
func isolation(host []string) {
	facts := factsOfUser(host)
	if os.Getuid() == 0 {
		facts = factsOfRoot()
	}
	for _, f := range facts {
		fmt.Printf("%s: %s\n", f.row, f.find())
	}
}

func factsOfUser(host []string) []fact {
	return []fact{
		{"user namespace", func() string { return ownership(host, "user") + ", " + uidMap() }},
		{"mount, PID, IPC, UTS and network namespaces", func() string { return ownership(host, "mnt", "pid", "ipc", "uts", "net") }},
		{"cgroup namespace", func() string { return ownership(host, "cgroup") + ", " + cgroups() }},
		{"time namespace", func() string { return ownership(host, "time") }},
		{"capabilities of an app", capabilities},
		{"no_new_privs", func() string { return status("NoNewPrivs") }},
		{"seccomp", func() string { return status("Seccomp") }},
		{"AppArmor", label},
		{"risky system calls", func() string { return list(passed(risky())) }},
		{"masked kernel files", func() string { return list(shown(kernelFiles)) }},
		{"disks of the machine and of others", func() string { return list(shown(diskFiles)) }},
		{"devices", func() string { return list(names("/dev")) }},
		{"mounts", func() string { return list(looseMounts()) }},
		{"core dumps", coreLimit},
		{"mounts that show host paths", func() string { return list(bindPoints()) }},
		{"names of layers", rootSource},
	}
}

func factsOfRoot() []fact {
	return []fact{
		{"capabilities of root in the container", capabilities},
		{"kernel settings", func() string { return writable("/proc/sys") }},
		{"sysfs", func() string { return writable("/sys") + "; network links of others: " + list(foreignLinks()) }},
	}
}

func list(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, " ")
}

// names are the entries of a directory, sorted.
func names(dir string) (all []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// ownership says of namespaces whether they are the container's own or the host's.
func ownership(host []string, kinds ...string) string {
	var own, shared []string
	for _, kind := range kinds {
		link, err := os.Readlink("/proc/self/ns/" + kind)
		switch {
		case err != nil:
			return err.Error()
		case slices.Contains(host, link):
			shared = append(shared, kind)
		default:
			own = append(own, kind)
		}
	}
	return "own: " + list(own) + ", the host's: " + list(shared)
}

// uidMap is the users of the host that the container's are, as "first in it>first of the host*how many".
func uidMap() string {
	text, _ := os.ReadFile("/proc/self/uid_map")
	var all []string
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 {
			all = append(all, f[0]+">"+f[1]+"*"+f[2])
		}
	}
	return list(all)
}

// cgroups says whether the container's cgroups are roots to it, or named as the host names them.
func cgroups() string {
	text, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, ":/\n") {
			return "names of the host's in /proc/self/cgroup"
		}
	}
	return "no names of the host's in /proc/self/cgroup"
}

// status is a field of /proc/self/status.
func status(field string) string {
	text, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(line, ":"); name == field {
			return strings.TrimSpace(value)
		}
	}
	return "not told"
}

// capabilities are how many this process has, may inherit and may ever get.
func capabilities() string {
	var all []string
	for _, set := range [][2]string{{"effective", "CapEff"}, {"inheritable", "CapInh"}, {"bounding", "CapBnd"}} {
		bits, _ := strconv.ParseUint(status(set[1]), 16, 64)
		n := 0
		for ; bits != 0; bits &= bits - 1 {
			n++
		}
		all = append(all, fmt.Sprintf("%d %s (%s)", n, set[0], status(set[1])))
	}
	return strings.Join(all, ", ")
}

// label is what confines the process by name.
func label() string {
	text, err := os.ReadFile("/proc/self/attr/apparmor/current")
	if err != nil {
		return "the kernel has none"
	}
	return strings.TrimSpace(string(text))
}

// kernelFiles tell of the machine or of its users, and no app needs them.
var kernelFiles = []string{
	"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/kpagecgroup", "/proc/kpagecount",
	"/proc/kpageflags", "/proc/latency_stats", "/proc/locks", "/proc/pressure", "/proc/sched_debug", "/proc/scsi",
	"/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware", "/sys/kernel/security",
}

var diskFiles = []string{
	"/proc/diskstats", "/proc/fs", "/proc/mdstat", "/proc/partitions", "/proc/swaps", "/sys/block", "/sys/class/bdi",
	"/sys/class/block", "/sys/dev/block", "/sys/devices/virtual/bdi", "/sys/devices/virtual/block", "/sys/fs/btrfs",
	"/sys/fs/ext4", "/sys/fs/xfs",
}

// shown are the files that no other file is mounted over, and the directories that have something in them, though it may
// need root to read.
func shown(paths []string) (all []string) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err == nil && (info.Mode().IsRegular() || info.IsDir() && contents(path) == nil) {
			all = append(all, path)
		}
	}
	return all
}

// passed are the calls that the kernel itself answered: it did them, or found fault with their arguments.
func passed(calls []attempt) (all []string) {
	for _, a := range calls {
		switch err := a.try(); {
		case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOSYS),
			errors.Is(err, unix.EAFNOSUPPORT), errors.Is(err, unix.EPROTONOSUPPORT):
		default:
			all = append(all, a.name)
		}
	}
	return all
}

// risky are calls that other containers' engines deny, or that the kernel's faults of the last years were in.
func risky() []attempt {
	const userMode, traceMe, noRandomize = 1, 0, 0x40000 // UFFD_USER_MODE_ONLY, PTRACE_TRACEME, ADDR_NO_RANDOMIZE
	var zeros [256]byte
	buf := uintptr(unsafe.Pointer(&zeros[0]))
	return append([]attempt{
		call("add_key", unix.SYS_ADD_KEY, buf, buf), call("bpf", unix.SYS_BPF), call("fsopen", unix.SYS_FSOPEN, buf),
		call("io_uring_setup", unix.SYS_IO_URING_SETUP, 1, buf), call("keyctl", unix.SYS_KEYCTL),
		call("open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT), call("perf_event_open", unix.SYS_PERF_EVENT_OPEN, buf),
		call("process_vm_readv", unix.SYS_PROCESS_VM_READV, uintptr(os.Getpid())), call("syslog", unix.SYS_SYSLOG, 10),
		call("userfaultfd", unix.SYS_USERFAULTFD, userMode), call("ptrace", unix.SYS_PTRACE, traceMe),
		call("personality", unix.SYS_PERSONALITY, noRandomize),
		{"new user namespace", func() error { return unix.Unshare(unix.CLONE_NEWUSER) }},
	}, sockets()...)
}

// looseMounts are the mounts that honour set-uid programs or devices. Masks are left out: they have room for no file.
func looseMounts() (all []string) {
	for _, m := range mounts() {
		kind := m[slices.Index(m, "-")+1]
		if m[3] == "/null" && !strings.HasPrefix(m[4], "/dev/") || kind == "tmpfs" && strings.HasPrefix(m[len(m)-1], "ro") {
			continue
		}
		lax := ""
		for _, option := range []string{"nosuid", "nodev"} {
			if !slices.Contains(strings.Split(m[5], ","), option) {
				lax += "-" + option
			}
		}
		if strings.HasPrefix(m[4], "/dev") {
			lax = strings.TrimSuffix(lax, "-nodev") // it is there for devices
		}
		if lax != "" {
			all = append(all, m[4]+lax)
		}
	}
	return all
}

// mounts are the fields of mountinfo.
func mounts() (all [][]string) {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 9 {
			all = append(all, f)
		}
	}
	return all
}

func coreLimit() string {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &l); err != nil {
		return err.Error()
	}
	if l.Max == unix.RLIM_INFINITY {
		return "no limit"
	}
	return fmt.Sprint("at most ", l.Max, " bytes")
}

// bindPoints are the mounts other than the root of which mountinfo tells where on the host they come from.
func bindPoints() (all []string) {
	for _, m := range mounts() {
		kind := m[slices.Index(m, "-")+1]
		if m[4] != "/" && m[3] != "/" && !slices.Contains([]string{"proc", "sysfs", "tmpfs", "devtmpfs", "devpts", "mqueue", "cgroup", "cgroup2"}, kind) {
			all = append(all, m[4])
		}
	}
	return all
}

// rootSource is what the mount of the root tells of where its layers lie.
func rootSource() string {
	for _, m := range mounts() {
		if m[4] != "/" {
			continue
		}
		for option := range strings.SplitSeq(m[len(m)-1], ",") {
			if value, ok := strings.CutPrefix(option, "lowerdir="); ok && strings.HasPrefix(value, "/proc/self/fd/") {
				return "descriptors"
			} else if ok {
				return "paths of the host"
			}
		}
	}
	return "no layers"
}

// foreignLinks are the network links that sysfs lists and that are not of this network namespace.
func foreignLinks() []string {
	own, _ := os.ReadFile("/proc/self/net/dev")
	return slices.DeleteFunc(names("/sys/class/net"), func(name string) bool { return strings.Contains(string(own), name+":") })
}

// writable says whether dir is mounted read-only, and below which of its entries files can be opened to write to.
func writable(dir string) string {
	var st unix.Statfs_t
	_ = unix.Statfs(dir, &st)
	mounted := "read-write"
	if st.Flags&unix.ST_RDONLY != 0 {
		mounted = "read-only"
	}
	count := map[string]int{}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		if fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
			unix.Close(fd)
			top, _, _ := strings.Cut(strings.TrimPrefix(path, dir+"/"), "/")
			count[top]++
		}
		return nil
	})
	var all []string
	for top := range count {
		all = append(all, top)
	}
	slices.Sort(all)
	return mounted + ", files to write to below: " + list(all)
}
