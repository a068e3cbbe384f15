package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"cupola/runtime/durable"
)

// The kernel's name of <linux/ext4.h> that x/sys does not have.
const ext4IocResizeFS = 0x40086610

const blockSize = 4096 // of our file systems

// growLoop makes an image and the file system in it larger. ext4 does that itself while it is mounted, for a process that may
// raise limits; otherwise a copy is made larger and takes the image's place, if no container has it. Each part is there
// already, or is done.
func (d *Disks) growLoop(dir string, s Size) error {
	s.Bytes = grained(s.Bytes)
	img, size := filepath.Join(dir, Image), imageBytes(s)
	if err := ignoreGone(os.Remove(img + growing)); err != nil {
		return err
	}
	has, err := fileSystemBytes(img)
	if err != nil || has >= size {
		return err
	}
	if info, err := os.Stat(img); err != nil {
		return err
	} else if info.Size() < size {
		if err := os.Truncate(img, size); err != nil {
			return err
		}
	}
	if err := d.Open(dir); err != nil {
		return err
	}
	err = growMounted(filepath.Join(dir, Data), size)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EOPNOTSUPP) {
		return d.growCopy(dir, size)
	}
	return err
}

// growing is what the name of an image's larger copy ends with.
const growing = ".new"

// fileSystemBytes reads how large the file system of an image is.
func fileSystemBytes(img string) (int64, error) {
	f, err := os.Open(img)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	const superblock, low, high = 1024, 0x4, 0x150 // of the count of blocks
	var b [4]byte
	if _, err := f.ReadAt(b[:], superblock+low); err != nil {
		return 0, err
	}
	blocks := int64(binary.LittleEndian.Uint32(b[:]))
	if _, err := f.ReadAt(b[:], superblock+high); err != nil {
		return 0, err
	}
	return (blocks | int64(binary.LittleEndian.Uint32(b[:]))<<32) * blockSize, nil
}

// growMounted grows a mounted file system to the size of its image.
func growMounted(data string, size int64) error {
	f, err := os.Open(data)
	if err != nil {
		return err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	dev, err := openLoop(int(unix.Minor(st.Dev)))
	if err != nil {
		return err
	}
	defer dev.Close()
	if err := unix.IoctlSetInt(int(dev.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return fmt.Errorf("have the loop device see its image: %w", err)
	}
	blocks := uint64(size / blockSize)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), ext4IocResizeFS, uintptr(unsafe.Pointer(&blocks))); errno != 0 {
		return fmt.Errorf("grow the file system: %w", errno)
	}
	return nil
}

// growCopy replaces an image by a larger one, whole or not at all: the tool that does it may be killed at any time.
func (d *Disks) growCopy(dir string, size int64) error {
	img, data := filepath.Join(dir, Image), filepath.Join(dir, Data)
	if err := retire(data); err != nil {
		return err
	}
	old, err := os.Open(img)
	if err != nil {
		return err
	}
	defer old.Close()
	grown := img + growing
	err = cloneSparse(old, grown)
	if err == nil {
		err = os.Truncate(grown, size)
	}
	if err == nil {
		err = checked(grown)
	}
	if err == nil {
		err = tool("resize2fs", grown)
	}
	if err == nil {
		err = durable.Rename(grown, img)
	}
	if err != nil {
		return errors.Join(err, ignoreGone(os.Remove(grown)))
	}
	return d.Open(dir)
}

// errInUse reports that a disk cannot be made read-only now.
var errInUse = errors.New("it cannot be copied or made larger while containers have it")

// releasing is how long a container that has ended may still have a disk.
const releasing = 5 * time.Second

// retire unmounts a disk for good, once no container has it; until then nothing changes. Copies of its mount may stay:
// whatever begins in a mount namespace has all of the machine's mounts, and other programs keep them as long as they
// run. Since nothing can write through them any more, a copy of the image is whole, and takes its place.
func retire(data string) error {
	if err := still(data); err != nil {
		return err
	}
	if err := unix.Unmount(data, unix.UMOUNT_NOFOLLOW); err != nil {
		return errors.Join(fmt.Errorf("unmount it to make it larger: %w", err), remount(data, 0))
	}
	return nil
}

// still makes a disk read-only, once no container has it; until then nothing changes. All that was written is in its
// image then.
func still(data string) error {
	var st unix.Stat_t
	if err := unix.Stat(data, &st); err != nil {
		return err
	}
	for end := time.Now().Add(releasing); ; <-time.After(10 * time.Millisecond) {
		used, err := elsewhere(st.Dev, data)
		if err != nil {
			return err
		}
		if !used {
			break
		}
		if time.Now().After(end) {
			return errInUse
		}
	}
	if err := remount(data, unix.MS_RDONLY); err != nil {
		if err == unix.EBUSY {
			return errInUse
		}
		return fmt.Errorf("make it read-only: %w", err)
	}
	return nil
}

// InUse reports whether a container has the open disk in dir, which must be a separate file system.
func (d *Disks) InUse(dir string) (bool, error) {
	data := filepath.Join(dir, Data)
	var st unix.Stat_t
	if err := unix.Stat(data, &st); err != nil {
		return false, err
	}
	return elsewhere(st.Dev, data)
}

// elsewhere reports whether a device is mounted at another place than its own, in any mount namespace. Processes may end
// meanwhile.
func elsewhere(device uint64, place string) (bool, error) {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return false, err
	}
	seen := map[string]bool{}
	for _, p := range processes {
		namespace, err := os.Readlink(p + "/ns/mnt")
		if err != nil || seen[namespace] {
			continue
		}
		mounts, err := os.ReadFile(p + "/mountinfo")
		if err != nil || len(mounts) == 0 {
			continue
		}
		seen[namespace] = true
		if mountedElsewhere(string(mounts), device, place) {
			return true, nil
		}
	}
	return false, nil
}

// mountedElsewhere reads a mountinfo: number, parent's number, device, root and place of each mount.
func mountedElsewhere(mounts string, device uint64, place string) bool {
	number := fmt.Sprintf("%d:%d", unix.Major(device), unix.Minor(device))
	for line := range strings.Lines(mounts) {
		if f := strings.Fields(line); len(f) > 4 && f[2] == number && f[4] != place {
			return true
		}
	}
	return false
}

// checked checks and repairs a file system, which resize2fs requires.
func checked(img string) error {
	err := tool("e2fsck", "-f", "-p", img)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 { // what was wrong no longer is
		return nil
	}
	return err
}

// tool runs a program of e2fsprogs for as long as it takes: a large disk is read
// whole.
func tool(name string, args ...string) error {
	path, err := findTool(name)
	if err != nil {
		return err
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", path, err, strings.TrimSpace(string(out)))
	}
	return nil
}
