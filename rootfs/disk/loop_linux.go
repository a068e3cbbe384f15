package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// makeLoop mounts a fresh ext4 of size s at dir/disk. The loop device clears itself with the last user, so no crash
// leaves one behind that nothing uses.
func (d *Disks) makeLoop(dir string, s Size) error {
	s.Bytes = grained(s.Bytes)
	tpl, err := d.template(s)
	if err != nil {
		return err
	}
	defer tpl.Close()
	img := filepath.Join(dir, Image)
	if err := cloneSparse(tpl, img); err != nil {
		return fmt.Errorf("copy disk template: %w", err)
	}
	data := filepath.Join(dir, Data)
	if err := mountLoop(img, data); err != nil {
		return err
	}
	return os.Remove(filepath.Join(data, "lost+found"))
}

func grained(bytes int64) int64 { return (bytes + grain - 1) / grain * grain }

// mountLoop mounts an image that no loop device has.
func mountLoop(img, data string) error {
	durable, err := hasJournal(img)
	if err != nil {
		return err
	}
	dev, err := attach(img, durable || chargesLoops())
	if err != nil {
		return fmt.Errorf("attach loop device: %w", err)
	}
	return mountDevice(dev, data, durable)
}

// remountLoop mounts an image that was mounted before. Where another program has a copy of that mount, which it keeps as long as it
// runs, the image is mounted through the same device: a second one would not see what has not reached the image yet, and both
// would write to it.
func remountLoop(img, data string) error {
	dev, err := attached(img)
	if err != nil {
		return fmt.Errorf("look for the loop device of %s: %w", img, err)
	}
	if dev == nil {
		return mountLoop(img, data)
	}
	durable, err := hasJournal(img)
	if err != nil {
		dev.Close()
		return err
	}
	return mountDevice(dev, data, durable)
}

// mountDevice mounts a loop device, and closes it.
func mountDevice(dev *os.File, data string, durable bool) error {
	defer dev.Close()
	if err := unix.Mount(dev.Name(), data, "ext4", mountFlags, loopOptions(durable)); err != nil {
		return fmt.Errorf("mount disk image: %w", err)
	}
	return nil
}

// loopOptions are those that an image is mounted with. An image without a journal goes with its container, or with a crash of the
// machine: without barriers what it holds only reaches the disk if the container lives long enough.
func loopOptions(durable bool) string {
	// The tables are holes already: a kernel thread zeroing them would fill them with real blocks.
	const opts = "noinit_itable"
	if durable {
		return opts
	}
	return opts + ",nobarrier"
}

// chargesLoops reports whether the kernel counts the page cache of an image towards the memory of the container that writes to
// it, as it does on cgroup v2 (drivers/block/loop.c: loop_queue_rq). The loop device cannot wait until these pages are written,
// so that a container with little memory that writes much would be killed.
func chargesLoops() bool {
	var st unix.Statfs_t
	return unix.Statfs("/sys/fs/cgroup", &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
}

// hasJournal reads whether the file system of an image has a journal.
func hasJournal(img string) (bool, error) {
	const superblock, compatible, journal = 1024, 0x5c, 0x4 // s_feature_compat, EXT4_FEATURE_COMPAT_HAS_JOURNAL
	f, err := os.Open(img)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var b [1]byte
	_, err = f.ReadAt(b[:], superblock+compatible)
	return b[0]&journal != 0, err
}

const mountFlags = unix.MS_NODEV | unix.MS_NOSUID | unix.MS_NOATIME

// remount changes the file system of a disk, for all that have it mounted.
func remount(data string, flags uintptr) error {
	return unix.Mount("", data, "", unix.MS_REMOUNT|mountFlags|flags, "")
}

// writable takes up a disk that a killed daemon was about to make larger.
func writable(data string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(data, &st); err != nil {
		return fmt.Errorf("statfs %s: %w", data, err)
	}
	if st.Flags&unix.ST_RDONLY == 0 {
		return nil
	}
	if err := remount(data, 0); err != nil {
		return fmt.Errorf("make disk writable: %w", err)
	}
	return nil
}

// isMount reports whether something is mounted at dir.
func isMount(dir string) (bool, error) {
	var here, above unix.Stat_t
	if err := errors.Join(unix.Lstat(dir, &here), unix.Lstat(filepath.Dir(dir), &above)); err != nil {
		return false, fmt.Errorf("look for a mount at %s: %w", dir, err)
	}
	return here.Dev != above.Dev, nil
}

// cloneSparse copies in to a new file, by reference where the file system can, else block by block without the holes.
func cloneSparse(in *os.File, to string) error {
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	err = unix.IoctlFileClone(int(out.Fd()), int(in.Fd()))
	if err != nil {
		err = copyData(in, out)
	}
	return errors.Join(err, out.Close())
}

func copyData(in, out *os.File) error {
	st, err := in.Stat()
	if err != nil {
		return err
	}
	if err := out.Truncate(st.Size()); err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for off := int64(0); off < st.Size(); {
		start, err := unix.Seek(int(in.Fd()), off, unix.SEEK_DATA)
		if err == unix.ENXIO {
			return nil
		}
		if err != nil {
			return err
		}
		if off, err = unix.Seek(int(in.Fd()), start, unix.SEEK_HOLE); err != nil {
			return err
		}
		if err := copyRange(in, out, start, off, buf); err != nil {
			return err
		}
	}
	return nil
}

func copyRange(in, out *os.File, from, to int64, buf []byte) error {
	for from < to {
		n, err := in.ReadAt(buf[:min(int64(len(buf)), to-from)], from)
		if n == 0 {
			return err
		}
		if _, err := out.WriteAt(buf[:n], from); err != nil {
			return err
		}
		from += int64(n)
	}
	return nil
}

// attach puts img behind a free loop device. The device lives until it is unmounted or, unmounted, closed. A direct one keeps
// nothing of the image in the page cache, which has the files already, where the file system of the image can do that.
func attach(img string, direct bool) (*os.File, error) {
	back, err := os.OpenFile(img, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer back.Close()
	ctl, err := openNode("/dev/loop-control", unix.S_IFCHR, unix.Mkdev(10, 237)) // Linux' devices.txt
	if err != nil {
		return nil, err
	}
	defer ctl.Close()
	for range 100 { // others take free devices too, between finding and configuring one
		n, err := unix.IoctlRetInt(int(ctl.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, err
		}
		dev, err := openLoop(n)
		if err != nil {
			return nil, err
		}
		cfg := unix.LoopConfig{Fd: uint32(back.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
		if direct {
			cfg.Info.Flags |= unix.LO_FLAGS_DIRECT_IO
		}
		copy(cfg.Info.File_name[:len(cfg.Info.File_name)-1], img)
		if err = unix.IoctlLoopConfigure(int(dev.Fd()), &cfg); err == nil {
			return dev, nil
		}
		dev.Close()
		if err != unix.EBUSY {
			return nil, err
		}
	}
	return nil, errors.New("no loop device stays free")
}

// attached opens the loop device that has img; nil if none does.
func attached(img string) (*os.File, error) {
	var want unix.Stat_t
	if err := unix.Stat(img, &want); err != nil {
		return nil, err
	}
	devs, err := Loops(filepath.Dir(img))
	if err != nil {
		return nil, err
	}
	for _, d := range devs {
		dev, err := os.OpenFile(d.Device, os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		// Held open, it does not clear itself any more.
		info, err := unix.IoctlLoopGetStatus64(int(dev.Fd()))
		if err == nil && info.Inode == want.Ino && info.Device == want.Dev {
			return dev, nil
		}
		dev.Close()
		if err != nil && err != unix.ENXIO { // it was freed meanwhile
			return nil, err
		}
	}
	return nil, nil
}

// openLoop opens /dev/loop<n>.
func openLoop(n int) (*os.File, error) {
	return openNode(fmt.Sprintf("/dev/loop%d", n), unix.S_IFBLK, unix.Mkdev(7, uint32(n)))
}

// openNode opens a device, making its node where no devtmpfs does: a /dev that a container engine filled.
func openNode(name string, kind uint32, number uint64) (*os.File, error) {
	dev, err := os.OpenFile(name, os.O_RDWR, 0)
	if !errors.Is(err, fs.ErrNotExist) {
		return dev, err
	}
	if err := unix.Mknod(name, kind|0o660, int(number)); err != nil && err != unix.EEXIST {
		return nil, fmt.Errorf("make %s: %w", name, err)
	}
	return os.OpenFile(name, os.O_RDWR, 0)
}

// unmount takes every mount off dir. A mount that is busy is detached: it goes with its last user.
func unmount(dir string) error {
	for {
		err := unix.Unmount(dir, unix.UMOUNT_NOFOLLOW)
		if err == unix.EBUSY {
			err = unix.Unmount(dir, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
		}
		switch err {
		case nil:
			continue
		case unix.EINVAL, unix.ENOENT: // not a mount, or nothing there
			return nil
		}
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
}

// loopAt is the name of the loop device that is mounted at dir; "" if none is.
func loopAt(dir string) string {
	var st unix.Stat_t
	if mounted, err := isMount(dir); err != nil || !mounted || unix.Lstat(dir, &st) != nil || unix.Major(st.Dev) != 7 {
		return ""
	}
	return fmt.Sprintf("loop%d", unix.Minor(st.Dev))
}

// detach frees loop devices that still hold img, which only a device without autoclear can: the one that was mounted, or
// whichever does. A machine that has had many containers has as many devices, and it takes long to look at all.
func detach(img, mounted string) error {
	if _, err := os.Lstat(img); err != nil {
		return nil
	}
	devs, err := mayHold(img, mounted)
	if err != nil {
		return err
	}
	for _, dev := range devs {
		f, err := os.OpenFile(dev.Device, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		err = unix.IoctlSetInt(int(f.Fd()), unix.LOOP_CLR_FD, 0)
		f.Close()
		if err != nil && err != unix.ENXIO {
			return fmt.Errorf("free %s: %w", dev.Device, err)
		}
	}
	return nil
}

// mayHold are the loop devices that may hold img.
func mayHold(img, mounted string) ([]LoopDevice, error) {
	if mounted == "" {
		return Loops(filepath.Dir(img))
	}
	return loop(mounted, filepath.Dir(img)), nil
}

// LoopDevice is a loop device in use.
type LoopDevice struct {
	Device string // /dev/loop3
	File   string // the image behind it, also when it was deleted
}

// Loops lists the loop devices whose image lies below dir, which is absolute.
func Loops(dir string) ([]LoopDevice, error) {
	devices, err := os.ReadDir("/sys/block")
	if err != nil {
		return nil, err
	}
	var found []LoopDevice
	for _, e := range devices {
		if strings.HasPrefix(e.Name(), "loop") {
			found = append(found, loop(e.Name(), dir)...)
		}
	}
	return found, nil
}

// loop is the loop device of a name, if its image lies below dir.
func loop(name, dir string) []LoopDevice {
	text, err := os.ReadFile("/sys/block/" + name + "/loop/backing_file")
	if err != nil {
		return nil // it is not in use
	}
	file := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), " (deleted)")
	if !strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/") {
		return nil
	}
	return []LoopDevice{{Device: "/dev/" + name, File: file}}
}

func usedMount(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("statfs %s: %w", dir, err)
	}
	return int64(st.Blocks-st.Bfree) * st.Bsize, nil
}

func blocks(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}
