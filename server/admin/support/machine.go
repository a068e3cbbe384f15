package support

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// kernelFiles are what the kernel and the system tell of the machine, and of no user.
var kernelFiles = []string{
	"/proc/version", "/etc/os-release", "/proc/uptime", "/proc/loadavg", "/proc/meminfo", "/proc/vmstat", "/proc/cgroups", "/proc/filesystems",
	"/proc/pressure/cpu", "/proc/pressure/memory", "/proc/pressure/io",
	"/proc/sys/kernel/pid_max", "/proc/sys/kernel/unprivileged_userns_clone", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "/proc/sys/user/max_user_namespaces",
	"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/netfilter/nf_conntrack_max", "/proc/sys/net/netfilter/nf_conntrack_count", "/proc/sys/fs/file-nr", "/proc/sys/vm/overcommit_memory",
	"/proc/sys/fs/inotify/max_user_instances", "/sys/fs/cgroup/cgroup.controllers", "/sys/fs/cgroup/cgroup.subtree_control",
}

// processFiles are what the kernel tells of a process.
var processFiles = []string{"status", "limits", "cgroup", "io"}

// Machine is the facts about the kernel, the cgroups and the file system of a directory.
func Machine(dataDir string) File {
	var b bytes.Buffer
	for _, name := range kernelFiles {
		writeFile(&b, name)
	}
	if all, err := filepath.Glob("/sys/fs/cgroup/*"); err == nil {
		fmt.Fprintf(&b, "== names in /sys/fs/cgroup ==\n%q\n\n", all)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dataDir, &st); err != nil {
		fmt.Fprintf(&b, "== file system of the data directory ==\n%v\n", err)
	} else {
		fmt.Fprintf(&b, "== file system of the data directory ==\ntype %#x, block size %d, blocks %d, free %d, inodes %d, free %d, flags %#x\n", st.Type, st.Bsize, st.Blocks, st.Bavail, st.Files, st.Ffree, st.Flags)
	}
	return File{"kernel.txt", b.Bytes()}
}

// process is the facts about this process.
func process() ([]byte, error) {
	var b bytes.Buffer
	for _, name := range processFiles {
		writeFile(&b, "/proc/self/"+name)
	}
	entries, err := os.ReadDir("/proc/self/fd")
	kinds := map[string]int{}
	for _, e := range entries {
		to, _ := os.Readlink("/proc/self/fd/" + e.Name())
		kinds[kindOf(to)]++
	}
	fmt.Fprintf(&b, "== open descriptors ==\n%v\n", kinds)
	return b.Bytes(), err
}

// kindOf is what a descriptor is, without the names of files.
func kindOf(link string) string {
	for _, prefix := range []string{"socket:", "pipe:", "anon_inode:"} {
		if strings.HasPrefix(link, prefix) {
			return strings.TrimSuffix(prefix, ":")
		}
	}
	return "file"
}

func writeFile(b *bytes.Buffer, name string) {
	text, err := os.ReadFile(name)
	if err != nil {
		return // this kernel has none
	}
	fmt.Fprintf(b, "== %s ==\n%s\n\n", name, bytes.TrimSpace(text))
}
