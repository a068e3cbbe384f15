package rootfs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// mark lies beside an unpacked tree and says that it is whole. Trees are not synced to disk before use, as that can take
// seconds on a busy disk: until they are, the mark holds for the boot in which it was written, since only a crash of the
// machine, not one of the daemon, loses what is written but not synced.
type mark struct {
	Digest  string // of the archive
	Dest    string
	Bytes   int64 // of regular files
	Entries int
	Boot    string // the boot it was written in
	Synced  bool

	traits // of an image's whole tree, in the layer on its top
}

const markFile = "layer.json"

func newMark() mark { return mark{Boot: bootID()} }

// bootID is the kernel's id of the running boot.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

func (m mark) whole() bool { return m.Synced || m.Boot == bootID() }

func readMark(dir string) (mark, error) {
	var m mark
	b, err := os.ReadFile(filepath.Join(dir, markFile))
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(b, &m)
}

func writeMark(dir string, m mark) error { return writeJSON(filepath.Join(dir, markFile), m) }

// writeJSON replaces a file in one step.
func writeJSON(name string, v any) error {
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

// settle syncs the tree beside a mark and then says so in the mark.
func settleTree(dir string) error {
	m, err := readMark(dir)
	if err != nil || m.Synced {
		return err
	}
	if err := syncTree(dir); err != nil {
		return err
	}
	m.Synced = true
	if err := writeMark(dir, m); err != nil {
		return err
	}
	return syncTree(dir)
}
