package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"cupola/rootfs/overlay"
	"cupola/runtime/thread"
)

// privileges checks for root and its capabilities, which other checks need.
func (m *machine) privileges(context.Context) Result {
	if !m.superuser {
		return failure("not root: checks that need root were skipped", "sudo cupola doctor")
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return failed(err, "run cupola on the machine itself, or in a container that is --privileged")
	}
	return judgeCapabilities(uint64(data[0].Effective)|uint64(data[1].Effective)<<32, m.Elsewhere)
}

// capability is one of capabilities(7).
type capability struct {
	name string
	bit  int
}

// judgeCapabilities judges root's capabilities. Stacks have files of many owners also where containers run elsewhere.
func judgeCapabilities(effective uint64, elsewhere bool) Result {
	need := []capability{{"chown", unix.CAP_CHOWN}, {"dac_override", unix.CAP_DAC_OVERRIDE}}
	if elsewhere {
		need = append(need, capability{"fowner", unix.CAP_FOWNER})
	} else {
		need = append(need, capability{"kill", unix.CAP_KILL}, capability{"mknod", unix.CAP_MKNOD}, capability{"net_admin", unix.CAP_NET_ADMIN}, capability{"setgid", unix.CAP_SETGID}, capability{"setuid", unix.CAP_SETUID},
			capability{"sys_admin", unix.CAP_SYS_ADMIN}, capability{"sys_chroot", unix.CAP_SYS_CHROOT}, capability{"sys_ptrace", unix.CAP_SYS_PTRACE})
	}
	var missing []string
	for _, c := range need {
		if effective&(1<<c.bit) == 0 {
			missing = append(missing, c.name)
		}
	}
	if len(missing) > 0 {
		return failure("root lacks the capabilities "+strings.Join(missing, ", "), "run cupola on the machine itself, or in a container that is --privileged")
	}
	return fine("root with all required capabilities")
}

// userns starts a process in all namespaces of a container, with the daemon's ID
// range.
func (m *machine) userns(ctx context.Context) Result {
	if m.read("proc/sys/user/max_user_namespaces") == "0" {
		return failure("user namespaces are disabled", "sudo sysctl -w user.max_user_namespaces=15000")
	}
	program, err := exec.LookPath("true")
	if err != nil {
		return warning("not checked: there is no program 'true'", m.install("coreutils"))
	}
	cmd := exec.CommandContext(ctx, program)
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(m.IDMap.Base), Size: int(m.IDMap.Size)}}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
		UidMappings: ids, GidMappings: ids,
	}
	if err := cmd.Run(); errors.Is(err, unix.EPERM) { // root may, but in a chroot, and where a container's seccomp filter forbids it: user_namespaces(7)
		return failed(fmt.Errorf("run a process in new namespaces: %w", err), "run cupola on the machine itself, with systemd-nspawn instead of chroot, or in a container that is --privileged")
	} else if err != nil {
		return failed(fmt.Errorf("run a process in new namespaces: %w", err), "sudo sysctl -w user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1")
	}
	return fine("started a process in user, pid, mount, network, ipc, uts and cgroup namespaces")
}

// overlay mounts an overlay on the data directory's file system, in the mount
// namespace of one thread, which exits afterwards.
func (m *machine) overlay(context.Context) Result {
	err := m.try(func(dir string) error {
		return thread.Throwaway("doctor", func() error { return mountOverlay(dir) })
	})
	switch {
	case err == nil:
		return fine("mounted on " + m.base())
	case errors.Is(err, unix.ENODEV):
		return failed(err, "sudo modprobe overlay")
	case errors.Is(err, unix.EINVAL):
		return failed(fmt.Errorf("%w: the file system of %s does not support overlayfs", err, m.base()), m.elsewhere())
	}
	return failed(err, "run cupola on the machine itself, or in a container that is --privileged; or choose another --data-dir")
}

// users checks whether each container can have its own users, on the data
// directory's file system.
func (m *machine) users(context.Context) Result {
	if err := m.try(func(dir string) error { return overlay.TryShift(dir, m.IDMap) }); err != nil {
		return warning(fmt.Sprintf("all containers share the same host users, so one can exhaust the others' limits: %v", err),
			"boot Linux 5.19 or later, and put --data-dir on ext4, xfs or btrfs (tmpfs from Linux 6.3)")
	}
	return fine("each container has its own")
}

func mountOverlay(dir string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("create a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	for _, name := range []string{"lower", "upper", "work", "root"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	at := filepath.Join(dir, "root")
	opts := fmt.Sprintf("lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work", dir, dir, dir)
	if err := unix.Mount("overlay", at, "overlay", unix.MS_NODEV, opts); err != nil {
		return fmt.Errorf("mount an overlay: %w", err)
	}
	return errors.Join(os.WriteFile(filepath.Join(at, "file"), nil, 0o600), unix.Unmount(at, 0))
}
