package durable

import (
	"os"
	"path/filepath"
	"testing"
)

func TestEnsureWritesOnlyWhatDiffers(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	for _, c := range []struct {
		content string
		mode    os.FileMode
		same    bool // the file stays the one that it was
	}{{"one", 0o600, false}, {"one", 0o600, true}, {"two", 0o600, false}, {"two", 0o644, false}, {"two", 0o644, true}} {
		before, _ := os.Stat(name)
		if err := Ensure(name, []byte(c.content), c.mode); err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(name)
		got, rerr := os.ReadFile(name)
		if err != nil || rerr != nil || string(got) != c.content || after.Mode() != c.mode || (before != nil && os.SameFile(before, after)) != c.same {
			t.Errorf("%+v: got %q, %v", c, got, after.Mode())
		}
	}
}

func TestEmptyDirKeepsTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	if err := EmptyDir(dir); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := EmptyDir(dir); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(dir)
	left, rerr := os.ReadDir(dir)
	if err != nil || rerr != nil || !os.SameFile(before, after) || len(left) > 0 {
		t.Errorf("left %v, %v %v; want the same directory, empty", left, err, rerr)
	}
}
