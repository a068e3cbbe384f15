package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attempt is something that a container must not get to do.
type attempt struct {
	name string
	try  func() error
}

// hostile tries everything and prints one line "name: error" for each.
func hostile() {
	for _, a := range slices.Concat(files(), calls(), sockets()) {
		fmt.Printf("%s: %v\n", a.name, a.try())
	}
}

func files() []attempt {
	var all []attempt
	for _, path := range []string{
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/net/ipv4/ip_forward", "/proc/sysrq-trigger",
		"/proc/irq/default_smp_affinity", "/sys/kernel/uevent_helper", "/sys/power/state", "/sys/class/net/lo/mtu",
		"/.cupola/init", "/.cupola/evil", "/proc/self/setgroups", "/proc/self/uid_map",
		"/proc/self/oom_score_adj_lower", "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/cgroup.procs", "/dev/sda", "/dev/mem", "/dev/kmsg", "/dev/fuse", "/dev/evil",
	} {
		all = append(all, attempt{"write " + path, func() error {
			flags := os.O_WRONLY
			if strings.HasSuffix(path, "evil") {
				flags |= os.O_CREATE
			}
			f, err := os.OpenFile(path, flags, 0o755)
			if err == nil {
				_, err = f.WriteString("1")
			}
			return err
		}})
	}
	for _, path := range []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/interrupts", "/proc/acpi", "/sys/firmware"} {
		all = append(all, attempt{"read " + path, func() error { return contents(path) }})
	}
	return all
}

// contents is an error that says "empty" for a path that shows nothing.
func contents(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	n := 0
	if info.IsDir() {
		entries, err := os.ReadDir(path)
		if err != nil {
			return err
		}
		n = len(entries)
	} else {
		data := make([]byte, 16)
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		n, _ = f.Read(data)
	}
	if n == 0 {
		return fmt.Errorf("empty")
	}
	return nil
}

// call makes a system call; the arguments that are not given are 0.
func call(name string, nr uintptr, args ...uintptr) attempt {
	return attempt{name, func() error {
		args := append(args, 0, 0, 0, 0, 0, 0)
		if _, _, errno := unix.Syscall6(nr, args[0], args[1], args[2], args[3], args[4], args[5]); errno != 0 {
			return errno
		}
		return nil
	}}
}

func calls() []attempt {
	var zeros [256]byte
	buf := uintptr(unsafe.Pointer(&zeros[0]))
	return []attempt{
		{"mount", func() error { return unix.Mount("tmpfs", "/home", "tmpfs", 0, "") }},
		{"mount cgroup v1, CVE-2022-0492", func() error { return unix.Mount("cgroup", "/home", "cgroup", 0, "memory") }},
		{"mount cgroup v2, CVE-2022-0492", func() error { return unix.Mount("cgroup2", "/home", "cgroup2", 0, "") }},
		{"mount proc, CVE-2025-52881", func() error { return unix.Mount("proc", "/home", "proc", 0, "") }},
		{"unshare user and cgroup, CVE-2022-0492", func() error { return unix.Unshare(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP) }},
		{"remount", func() error { return unix.Mount("", "/sys", "", unix.MS_REMOUNT|unix.MS_BIND, "") }},
		{"umount", func() error { return unix.Unmount("/sys", unix.MNT_DETACH) }},
		{"unshare user", func() error { return unix.Unshare(unix.CLONE_NEWUSER) }},
		{"unshare net", func() error { return unix.Unshare(unix.CLONE_NEWNET) }},
		{"setns", func() error { return unix.Setns(0, 0) }},
		{"mknod block", func() error { return unix.Mknod("/home/disk", unix.S_IFBLK|0o666, int(unix.Mkdev(8, 0))) }},
		{"mknod char", func() error { return unix.Mknod("/home/mem", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 1))) }},
		{"reboot", func() error { return unix.Reboot(unix.LINUX_REBOOT_CMD_CAD_OFF) }},
		{"sethostname", func() error { return unix.Sethostname([]byte("x")) }},
		{"kill another", func() error { return unix.Kill(4242, 0) }},
		call("clone user", unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD)),
		call("clone3", unix.SYS_CLONE3, buf, 88),
		call("keyctl", unix.SYS_KEYCTL, 0), call("add_key", unix.SYS_ADD_KEY), call("request_key", unix.SYS_REQUEST_KEY),
		call("bpf", unix.SYS_BPF), call("perf_event_open", unix.SYS_PERF_EVENT_OPEN, buf),
		call("userfaultfd", unix.SYS_USERFAULTFD), call("io_uring_setup", unix.SYS_IO_URING_SETUP, 1, buf),
		call("init_module", unix.SYS_INIT_MODULE), call("finit_module", unix.SYS_FINIT_MODULE), call("kexec_load", unix.SYS_KEXEC_LOAD),
		call("swapon", unix.SYS_SWAPON), call("settimeofday", unix.SYS_SETTIMEOFDAY), call("clock_settime", unix.SYS_CLOCK_SETTIME),
		call("pivot_root", unix.SYS_PIVOT_ROOT), call("open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT), call("syslog", unix.SYS_SYSLOG),
		call("fsopen", unix.SYS_FSOPEN), call("move_mount", unix.SYS_MOVE_MOUNT), call("open_tree", unix.SYS_OPEN_TREE),
		call("mount_setattr", unix.SYS_MOUNT_SETATTR), call("quotactl", unix.SYS_QUOTACTL), call("acct", unix.SYS_ACCT),
		call("lookup_dcookie", unix.SYS_LOOKUP_DCOOKIE), call("vhangup", unix.SYS_VHANGUP), call("pidfd_getfd", unix.SYS_PIDFD_GETFD),
		call("kcmp", unix.SYS_KCMP), call("move_pages", unix.SYS_MOVE_PAGES), call("new call", 600),
		{"raise nofile", func() error {
			return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1 << 30, Max: 1 << 30})
		}},
	}
}

func sockets() []attempt {
	socket := func(name string, domain, kind, proto int) attempt {
		return attempt{"socket " + name, func() error {
			fd, err := unix.Socket(domain, kind, proto)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}}
	}
	return []attempt{
		socket("raw", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP),
		socket("packet", unix.AF_PACKET, unix.SOCK_RAW, 0),
		socket("vsock", unix.AF_VSOCK, unix.SOCK_STREAM, 0),
		socket("alg", unix.AF_ALG, unix.SOCK_SEQPACKET, 0),
		socket("bluetooth", unix.AF_BLUETOOTH, unix.SOCK_RAW, 0),
		socket("netfilter", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER),
		socket("audit", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT),
	}
}
