package databroker

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// archiver runs the program of the archive_command in a directory, with a base backup that begins with the segment
// that is archived.
type archiver struct {
	t   *testing.T
	dir string
}

func newArchiver(t *testing.T) *archiver {
	t.Helper()
	a := &archiver{t, t.TempDir()}
	a.write("pg/PG_VERSION", "15", 0o600)
	a.write(archiveOn, "", 0o600)
	a.write("programs/15/bin/pg_basebackup", `#!/bin/sh
set -e
mkdir archive/new base
echo "START WAL LOCATION: 0/1 (file $(cat pg/now))" > base/backup_label
tar -C base -czf archive/new/base.tar.gz backup_label
rm -r base
`, 0o700)
	return a
}

func (a *archiver) write(name, content string, mode os.FileMode) {
	a.t.Helper()
	file := filepath.Join(a.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		a.t.Fatal(err)
	}
}

// archive archives a segment of some 64 KB, where the archive may have some KB. It returns the names of what is there.
func (a *archiver) archive(n, limitKB int) string {
	a.t.Helper()
	name := fmt.Sprintf("%024d", n)
	content := make([]byte, 64<<10)
	for n := range content {
		content[n] = byte(rand.Uint32()) // it cannot be compressed
	}
	a.write("pg/pg_wal/"+name, string(content), 0o600)
	a.write("pg/now", name, 0o600)
	program := strings.ReplaceAll(archiving(postgresArchive), "{limit}", fmt.Sprint(limitKB))
	places := strings.NewReplacer("/usr/lib/postgresql", a.dir+"/programs")
	c := exec.CommandContext(a.t.Context(), "/bin/sh", "-c", places.Replace(program), "sh", "pg_wal/"+name, name)
	c.Dir = a.dir
	if out, err := c.CombinedOutput(); err != nil {
		a.t.Fatalf("segment %d: %v\n%s", n, err, out)
	}
	var there []string
	for _, pattern := range []string{"archive/base-*/start", "archive/wal/*", "archive/paused"} {
		files, err := filepath.Glob(filepath.Join(a.dir, pattern))
		if err != nil {
			a.t.Fatal(err)
		}
		for _, file := range files {
			what := strings.TrimLeft(strings.TrimSuffix(filepath.Base(file), ".gz"), "0")
			if what == "start" {
				first, err := os.ReadFile(file)
				if err != nil {
					a.t.Fatal(err)
				}
				what = "base " + strings.TrimLeft(strings.TrimSpace(string(first)), "0")
			}
			there = append(there, what)
		}
	}
	return strings.Join(there, ", ")
}

// TestArchiveIsBounded archives segments: a full archive gets a new base backup, with which the older one and the log before
// it go. One that does not fit at all is deleted, and the server is not kept from writing.
func TestArchiveIsBounded(t *testing.T) {
	a := newArchiver(t)
	for n, c := range []struct {
		limitKB int
		want    string
	}{
		{200, "base 1, 1"},
		{200, "base 1, 1, 2"},
		{200, "base 3, 3"},
		{200, "base 3, 3, 4"},
		{10, "paused"},
		{200, "paused"},
	} {
		if got := a.archive(n+1, c.limitKB); got != c.want {
			t.Errorf("after segment %d: got %s; want %s", n+1, got, c.want)
		}
	}
	if err := os.Remove(filepath.Join(a.dir, archiveOn)); err != nil {
		t.Fatal(err)
	}
	if got := a.archive(7, 200); got != "paused" {
		t.Errorf("got %s; want nothing archived while it is off", got)
	}
}

// TestClockSetBack archives after a base backup whose time is to come: the next one is made at once, and is the newest.
func TestClockSetBack(t *testing.T) {
	a := newArchiver(t)
	a.archive(1, 1000)
	first, err := filepath.Glob(filepath.Join(a.dir, "archive/base-000000001-*"))
	if err != nil || len(first) != 1 {
		t.Fatalf("got %v, %v; want a base backup", first, err)
	}
	if err := os.Rename(first[0], filepath.Join(a.dir, "archive/base-000000001-29990101T000000Z")); err != nil {
		t.Fatal(err)
	}
	if got, want := a.archive(2, 1000), "base 1, base 2, 1, 2"; got != want {
		t.Errorf("got %s; want %s", got, want)
	}
	if got, want := a.archive(3, 200), "base 2, base 3, 2, 3"; got != want {
		t.Errorf("got %s; want %s: the oldest one deleted", got, want)
	}
}
