package tree

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"cupola/runtime/durable"
)

// Mark is a file next to an unpacked tree that says that the tree is whole. Trees are not synced to disk before use, which can
// take seconds on a busy disk: until they are, the mark holds for the boot in which it was written, since only a crash of
// the machine, not one of the daemon, loses what is written but not synced.
type Mark struct {
	Digest  string // of the archive
	Dest    string
	Bytes   int64 // of regular files
	Entries int
	Boot    string // the boot it was written in
	Synced  bool
	Kept    bool  `json:",omitempty"` // the archive is nowhere else
	Zip     bool  `json:",omitempty"` // the archive of a kept tree is a zip, otherwise a tar
	Size    int64 `json:",omitempty"` // of the archive of a kept tree; 0: not known

	Traits // of an image's whole tree, in its topmost layer
}

// Traits are what the files of a tree tell about the system in it; package system reads them.
type Traits struct {
	Compat string `json:",omitempty"` // which of CF's stacks it is like
	Kernel string `json:",omitempty"` // the oldest Linux that its C library runs on
	Libc   string `json:",omitempty"` // the newest symbols of its C library: GLIBC_2.36; or musl 1.2.5
	Arch   string `json:",omitempty"` // of its programs, in Go's words
}

// MarkFile is the mark's name in its directory.
const MarkFile = "layer.json"

// FS is the tree's name in the directory that has the mark.
const FS = "fs"

// NewMark is a mark that holds for this boot.
func NewMark() Mark { return Mark{Boot: bootID()} }

// bootID is the kernel's id of the running boot.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

// Whole reports whether the tree is still as it was when the mark was written.
func (m Mark) Whole() bool { return m.Synced || m.Boot == bootID() }

// ReadMark reads the mark in dir.
func ReadMark(dir string) (Mark, error) {
	var m Mark
	b, err := os.ReadFile(filepath.Join(dir, MarkFile))
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(b, &m)
}

// WriteMark replaces the mark in dir.
func WriteMark(dir string, m Mark) error { return WriteJSON(filepath.Join(dir, MarkFile), m) }

// WriteJSON replaces a file in one step. A crash of the machine may undo it.
func WriteJSON(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	tmp := name + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, name)
}

// WriteJSONSynced is WriteJSON that a crash of the machine does not undo.
func WriteJSONSynced(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return durable.Write(name, b, 0o600)
}

// RemovePartial removes what a crash left half unpacked in dir, or unsynced when the machine went down.
func RemovePartial(dir string, trash *Trash) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		m, err := ReadMark(name)
		if err == nil && m.Whole() && !strings.HasPrefix(e.Name(), ".") || errors.Is(err, syscall.EIO) {
			continue
		}
		if err := trash.Put(name); err != nil {
			return err
		}
	}
	return nil
}

// SyncMarked syncs the tree next to the mark in dir, and then says so in the mark.
func SyncMarked(dir string) error {
	m, err := ReadMark(dir)
	if err != nil || m.Synced {
		return err
	}
	if err := Sync(dir); err != nil {
		return err
	}
	m.Synced = true
	if err := WriteMark(dir, m); err != nil {
		return err
	}
	return Sync(dir)
}
