package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"cupola/runtime/durable"
)

const (
	mib = 1 << 20
	// grain rounds sizes up, so that droplets of many sizes share a few templates.
	grain = 4 * mib
	// maxTemplates bounds what is kept; a template is some 200 KiB on disk and takes 10 ms to make.
	maxTemplates = 64
	// journalBytes is what the journal of a durable disk takes besides its user's bytes.
	journalBytes = 16 * mib
	// formatTimeout is for disks that hang: mkfs writes some 200 KiB.
	formatTimeout = time.Minute
)

// inodesFor bounds the inodes of small disks: ext4 has no room for 200 000 in 64 MiB.
func inodesFor(s Size) int64 { return min(s.Inodes, max(1024, s.Bytes/2048)) }

// imageBytes is the length of an image whose user can write s.Bytes: ext4's inode tables, its bitmaps, and the 2 % (at
// most 16 MiB) that the kernel holds back for its own metadata come on top.
func imageBytes(s Size) int64 {
	n := s.Bytes + inodesFor(s)*256 + mib
	if s.Durable {
		n += journalBytes
	}
	n += min(n/48, 16*mib)
	return (n + 4095) &^ 4095
}

// template opens an empty ext4 image of size s, made at the first call. Every container gets a copy of its few blocks.
func (d *Disks) template(s Size) (*os.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	kind := "ext4"
	if s.Durable {
		kind = "ext4-durable"
	}
	name := filepath.Join(d.dir, fmt.Sprintf("%s-%d-%d.img", kind, s.Bytes, inodesFor(s)))
	if f, err := os.Open(name); err == nil {
		return f, nil
	}
	d.dropOldTemplatesLocked()
	tmp := name + ".new"
	if err := format(tmp, s); err != nil {
		return nil, errors.Join(err, ignoreGone(os.Remove(tmp)))
	}
	if err := durable.Rename(tmp, name); err != nil {
		return nil, err
	}
	return os.Open(name)
}

func format(name string, s Size) error {
	mkfs, err := findMkfs()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(imageBytes(s)), f.Close()); err != nil {
		return err
	}
	// No journal where nothing outlives a crash. The inode tables stay holes.
	journal := []string{"-O", "^has_journal,^resize_inode"}
	if s.Durable {
		journal = []string{"-O", "has_journal,^resize_inode", "-J", fmt.Sprintf("size=%d", journalBytes/mib)}
	}
	ctx, cancel := context.WithTimeout(context.Background(), formatTimeout)
	defer cancel()
	args := slices.Concat([]string{"-q", "-F", "-b", "4096", "-m", "0", "-N", strconv.FormatInt(inodesFor(s), 10)}, journal,
		[]string{"-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard", name})
	out, err := exec.CommandContext(ctx, mkfs, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %v: %s", mkfs, err, strings.TrimSpace(string(out)))
	}
	return nil
}

func findMkfs() (string, error) { return findTool("mkfs.ext4") }

// findTool looks where users' PATHs do not lead as well.
func findTool(name string) (string, error) {
	if p, err := exec.LookPath(name); err == nil {
		return p, nil
	}
	for _, p := range []string{"/usr/sbin/" + name, "/sbin/" + name} {
		if _, err := os.Stat(p); err == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s is not installed (package e2fsprogs)", name)
}

func (d *Disks) dropOldTemplatesLocked() {
	all, err := filepath.Glob(filepath.Join(d.dir, "ext4-*.img"))
	if err != nil || len(all) < maxTemplates {
		return
	}
	age := map[string]int64{}
	for _, name := range all {
		if st, err := os.Stat(name); err == nil {
			age[name] = st.ModTime().UnixNano()
		}
	}
	slices.SortFunc(all, func(a, b string) int { return int(min(1, max(-1, age[a]-age[b]))) })
	for _, name := range all[:len(all)-maxTemplates/2] {
		if err := os.Remove(name); err != nil {
			d.log.Warn("disk template was not removed", "err", err)
		}
	}
}
