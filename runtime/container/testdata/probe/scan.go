package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// scan prints the files and links of /proc and /sys that hold one of the words, or
// have it in their names. Files of other processes than this one are left out.
func scan(words []string) {
	n := 0
	for _, root := range []string{"/proc", "/sys"} {
		_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if e.IsDir() && path != "/proc/self" && strings.HasPrefix(path, "/proc/") && (path[6] >= '0' && path[6] <= '9' || strings.HasSuffix(path, "/task")) {
				return fs.SkipDir
			}
			if path == "/proc/kallsyms" || path == "/proc/self/cmdline" { // names of functions; the words
				return nil
			}
			n++
			look(path, e, words)
			return nil
		})
	}
	for _, name := range []string{"mounts", "mountinfo", "mountstats", "cgroup", "maps", "environ", "status", "cpuset"} {
		look("/proc/self/"+name, nil, words)
	}
	fmt.Println("scanned", n > 1000)
}

func look(path string, e fs.DirEntry, words []string) {
	text := []byte(path)
	if e != nil && e.Type()&fs.ModeSymlink != 0 {
		to, _ := os.Readlink(path)
		text = append(text, to...)
	} else if e == nil || e.Type().IsRegular() {
		text = append(text, content(path)...)
	}
	for _, w := range words {
		if bytes.Contains(text, []byte(w)) {
			fmt.Println(path, w)
		}
	}
}

// content reads what there is at once of a file.
func content(path string) []byte {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, 1<<20))
	return b
}
