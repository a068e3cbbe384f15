package volume

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// mountedElsewhere reports whether a process of this machine, like one of a
// container, has a directory mounted somewhere, or one below it.
func mountedElsewhere(dir string) (bool, error) {
	// mountinfo names a directory from the root of its file system, which need not
	// be "/" here: its last three names are compared.
	mark := "/" + filepath.Base(filepath.Dir(filepath.Dir(dir))) + "/" + filepath.Base(filepath.Dir(dir)) + "/" + filepath.Base(dir)
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return false, err
	}
	seen := map[string]bool{}
	for _, process := range all {
		namespace, err := os.Readlink(filepath.Join(process, "ns/mnt"))
		if err != nil || seen[namespace] {
			continue // it has ended, or is the kernel's
		}
		seen[namespace] = true
		found, err := mounts(filepath.Join(process, "mountinfo"), mark)
		if err != nil || found {
			return found, err
		}
	}
	return false, nil
}

// mounts reports whether a process has something mounted whose path has mark in it.
func mounts(file, mark string) (bool, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) > 3 && strings.Contains(fields[3]+"/", mark+"/") {
			return true, nil
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, syscall.ESRCH) && !errors.Is(err, syscall.EINVAL) {
		return false, err
	}
	return false, nil
}
