// Package directory makes the directories that a BOSH job expects on its disks,
// before any of its programs runs.
package directory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// Main makes directories: the first argument is the user that they are for, by
// name, the others are their paths. Existing directories stay unchanged.
func Main(args []string) int {
	if err := run(args); err != nil {
		fmt.Fprintln(os.Stderr, "directories:", err)
		return 1
	}
	return 0
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: directories USER PATH…")
	}
	u, err := user.Lookup(args[0])
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	for _, path := range args[1:] {
		if err := open(path); err != nil {
			return err
		}
		if err := give(path, uid, gid); err != nil {
			return err
		}
	}
	return nil
}

// disks are where the disks of an instance are mounted.
var disks = []string{"/var/vcap/data", "/var/vcap/store", "/var/vcap/sys"}

// open lets everyone pass through the disk that a path lies on.
func open(path string) error {
	for _, disk := range disks {
		if !strings.HasPrefix(path, disk+"/") {
			continue
		}
		info, err := os.Stat(disk)
		if err != nil || info.Mode().Perm() == 0o755 {
			return err
		}
		return errors.Join(os.Chown(disk, 0, 0), os.Chmod(disk, 0o755)) //nolint:gosec // they hold directories that are not for everyone
	}
	return nil
}

// give makes a directory that is a user's alone.
func give(path string, uid, gid int) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // what is in it is not for everyone
		return err
	}
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Chown(path, uid, gid)
}
