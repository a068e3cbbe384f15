package overlay

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

// escape protects what separates overlay's options and directories.
var escape = strings.NewReplacer(`\`, `\\`, `,`, `\,`, `:`, `\:`)

func options(lowers []string, upper, work string) string {
	escaped := make([]string, len(lowers))
	for i, dir := range lowers {
		escaped[i] = escape.Replace(dir)
	}
	return "lowerdir=" + strings.Join(escaped, ":") + ",upperdir=" + escape.Replace(upper) + ",workdir=" + escape.Replace(work)
}

func mount(point, opts string) error {
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

// Unmount removes every mount at point. One that is busy is detached and goes with its last user. It is not an error
// if nothing is mounted there.
func Unmount(point string) error {
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
		case unix.EPERM: // also where there is no mount
			if !IsMount(point) {
				return nil
			}
		}
		return fmt.Errorf("unmount %s: %w", point, err)
	}
}

// MakePrivate makes dir a private mount of itself, so that what is mounted below it shows up in no other mount namespace,
// where it would outlive its container.
func MakePrivate(dir string) error {
	if IsMount(dir) {
		return nil
	}
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", dir, err)
	}
	if err := unix.Mount("", dir, "", unix.MS_PRIVATE, ""); err != nil {
		return errors.Join(fmt.Errorf("make %s private: %w", dir, err), Unmount(dir))
	}
	return nil
}

// IsMount reports whether something is mounted at dir.
func IsMount(dir string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, dir, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, 0, &st)
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// MountsBelow lists the mount points below any of the directories, once each.
func MountsBelow(dirs ...string) ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var points []string
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20) // an overlay of many layers makes a long line
	for sc.Scan() {
		point, ok := mountPoint(sc.Text())
		if ok && slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(point, dir+"/") }) {
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
