package rootfs

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// overlayEscape protects what separates overlay's options and directories.
var overlayEscape = strings.NewReplacer(`\`, `\\`, `,`, `\,`, `:`, `\:`)

func overlayOptions(lowers []string, upper, work string) string {
	escaped := make([]string, len(lowers))
	for i, dir := range lowers {
		escaped[i] = overlayEscape.Replace(dir)
	}
	return "lowerdir=" + strings.Join(escaped, ":") + ",upperdir=" + overlayEscape.Replace(upper) + ",workdir=" + overlayEscape.Replace(work)
}

func mountOptions(point, opts string) error {
	// volatile: nothing of a container survives a crash of the machine, so that none of its syncs need to reach the disk.
	err := unix.Mount("overlay", point, "overlay", unix.MS_NODEV, opts+",volatile")
	if err == unix.EINVAL { // before Linux 5.10
		err = unix.Mount("overlay", point, "overlay", unix.MS_NODEV, opts)
	}
	if err != nil {
		return fmt.Errorf("mount overlay: %w", err)
	}
	return nil
}

// unmountAll takes every mount off point. One that is busy is detached and goes with its last user.
func unmountAll(point string) error {
	for {
		err := unix.Unmount(point, unix.UMOUNT_NOFOLLOW)
		if err == unix.EBUSY {
			err = unix.Unmount(point, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
		}
		switch err {
		case nil:
			continue
		case unix.EINVAL, unix.ENOENT: // no mount, or nothing there
			return nil
		}
		return fmt.Errorf("unmount %s: %w", point, err)
	}
}

// holdRun makes dir a private mount of itself, so that what is mounted below it shows up in no other mount namespace,
// where it would outlive its container.
func holdRun(dir string) error {
	if isMount(dir) {
		return nil
	}
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", dir, err)
	}
	if err := unix.Mount("", dir, "", unix.MS_PRIVATE, ""); err != nil {
		return errors.Join(fmt.Errorf("make %s private: %w", dir, err), unmountAll(dir))
	}
	return nil
}

// isMount tells whether something is mounted at dir.
func isMount(dir string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, dir, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, 0, &st)
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// mountsBelow lists the mount points below dir, once each.
func mountsBelow(dir string) ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var points []string
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20) // an overlay of many layers makes a long line
	for sc.Scan() {
		if point, ok := mountPoint(sc.Text()); ok && strings.HasPrefix(point, dir+"/") {
			points = append(points, point)
		}
	}
	slices.Sort(points)
	return slices.Compact(points), sc.Err()
}

// mountPoint reads the fifth field of a line of mountinfo, where blanks and the like are in octal.
func mountPoint(line string) (string, bool) {
	fields := strings.SplitN(line, " ", 6)
	if len(fields) < 6 {
		return "", false
	}
	var b strings.Builder
	for s := fields[4]; s != ""; {
		if s[0] == '\\' && len(s) >= 4 {
			if n, err := strconv.ParseUint(s[1:4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				s = s[4:]
				continue
			}
		}
		b.WriteByte(s[0])
		s = s[1:]
	}
	return b.String(), true
}

// syncTree writes all of the file system that dir lies on to the disk.
func syncTree(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.Syncfs(int(d.Fd()))
}
