package container

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

	"cupola/runtime/contract"
	"cupola/runtime/thread"
)

func (s settings) mounts(spec Spec) []*configs.Mount {
	const safe = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	all := []*configs.Mount{
		{Source: "proc", Destination: "/proc", Device: "proc", Flags: safe},
		bind(s.devDir, "/dev", unix.MS_NOSUID|unix.MS_NOEXEC|unix.MS_RDONLY),
		{Source: "devpts", Destination: "/dev/pts", Device: "devpts", Flags: unix.MS_NOSUID | unix.MS_NOEXEC, Data: "newinstance,ptmxmode=0666,mode=0620,gid=5"},
		{Source: "shm", Destination: "/dev/shm", Device: "tmpfs", Flags: safe, Data: "mode=1777,size=64m"},
		bind(s.sysDir, "/sys", safe|unix.MS_RDONLY),
	}
	if s.v2 {
		all = append(all, &configs.Mount{Source: "cgroup", Destination: "/sys/fs/cgroup", Device: "cgroup", Flags: safe | unix.MS_RDONLY})
	}
	programs := []string{contract.ProgramDir}
	if spec.Lifecycle {
		programs = append(programs, contract.LifecycleDir)
	}
	for _, dir := range programs {
		all = append(all, bind(s.helperDir, dir, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_RDONLY))
	}
	for _, m := range spec.Mounts {
		flags := unix.MS_NOSUID | unix.MS_NODEV
		if m.ReadOnly {
			flags |= unix.MS_RDONLY
		}
		if m.NoExec {
			flags |= unix.MS_NOEXEC
		}
		source := m.Source
		if source == "" {
			source = s.emptyDir()
			flags |= unix.MS_RDONLY
		}
		all = append(all, bind(source, m.Destination, flags))
		if m.Recursive && m.Source != "" && canRestrictTrees() {
			restrictTree(all[len(all)-1], flags)
		}
	}
	return all
}

// restrictTree makes a bind recursive: every mount below its source comes along and gets flags. A container's mount
// namespace belongs to its user namespace, in which the kernel refuses to bind a directory without the mounts below it,
// as this would uncover what they hide.
func restrictTree(m *configs.Mount, flags int) {
	attr := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if flags&unix.MS_RDONLY != 0 {
		attr |= unix.MOUNT_ATTR_RDONLY
	}
	if flags&unix.MS_NOEXEC != 0 {
		attr |= unix.MOUNT_ATTR_NOEXEC
	}
	m.Flags |= unix.MS_REC
	m.RecAttr = &unix.MountAttr{Attr_set: attr}
}

// canRestrictTrees reports whether the kernel changes the attributes of a tree of mounts at once (Linux 5.12).
var canRestrictTrees = sync.OnceValue(func() bool {
	return unix.MountSetattr(-1, "", 0, &unix.MountAttr{}) == nil
})

// emptyDir is the mount point for terminals in the /dev that all containers share: nothing is ever in it, as each
// container mounts its own terminals on it. In a mountinfo it is in a tmpfs, and shows no path of the host.
func (s settings) emptyDir() string { return filepath.Join(s.devDir, "pts") }

// bind is not recursive: nothing that is mounted below source comes along. See restrictTree.
func bind(source, destination string, flags int) *configs.Mount {
	return &configs.Mount{Source: source, Destination: destination, Device: "bind", Flags: unix.MS_BIND | flags}
}

// maskedPaths is Garden's list, what Docker has added to it, and what names the
// machine's disks: others' containers have theirs on loop devices, whose files
// lie in the data directory.
func maskedPaths() []string {
	return []string{
		"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/proc/pressure",
		"/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup",
		"/proc/partitions", "/proc/diskstats", "/proc/swaps", "/proc/mdstat", "/proc/fs", "/proc/locks",
		"/sys/firmware", "/sys/devices/virtual/powercap", "/sys/kernel/security",
		"/sys/block", "/sys/class/block", "/sys/class/bdi", "/sys/dev/block", "/sys/devices/virtual/block", "/sys/devices/virtual/bdi",
		"/sys/fs/ext4", "/sys/fs/xfs", "/sys/fs/btrfs",
	}
}

func readonlyPaths() []string {
	return []string{"/proc/bus", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}

// mountSys mounts the sysfs that all containers share at dir, unless it is
// mounted. The kernel lets a user namespace mount a sysfs only for its own
// network namespace, and binding the host's would show every mount below it
// and the host's network links; this one belongs to an empty network
// namespace.
func mountSys(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if is(dir, unix.SYSFS_MAGIC) {
		return nil
	}
	return thread.Throwaway("container", func() error { return mountEmptySys(dir) })
}

// mountEmptySys runs on a thread that enters an empty network namespace.
func mountEmptySys(dir string) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("make a network namespace: %w", err)
	}
	const flags = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("sysfs", dir, "sysfs", flags, ""); err != nil {
		return fmt.Errorf("mount sysfs on %s: %w", dir, err)
	}
	return nil
}
