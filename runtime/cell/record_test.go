package cell

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"cupola/runtime/lrp"
)

// TestRecordIsReplaced writes records that get longer and shorter, and wants each read as it was written, with no more
// files than two.
func TestRecordIsReplaced(t *testing.T) {
	dir := t.TempDir()
	for _, guid := range []string{"short", "a-guid-that-is-longer", "s", "", "a-guid-that-is-much-longer-than-any-before"} {
		if err := writeRecord(dir, record{Container: lrp.Container{GUID: guid}, Address: guid}); err != nil {
			t.Fatal(err)
		}
		if got, err := readRecord(dir); err != nil || got.Container.GUID != guid || got.Address != guid {
			t.Errorf("got %+v, %v; want %q", got, err, guid)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if want := []string{filepath.Join(dir, recordFile), filepath.Join(dir, recordFile+".new")}; err != nil || !slices.Equal(files, want) {
		t.Errorf("got %q, %v; want %q", files, err, want)
	}
	// What a daemon that was killed while it wrote has left is nothing to read.
	if err := os.WriteFile(filepath.Join(dir, recordFile+".new"), []byte("{torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readRecord(dir); err != nil {
		t.Error(err)
	}
	if err := writeRecord(dir, record{Address: "x"}); err != nil {
		t.Fatal(err)
	}
	if got, err := readRecord(dir); err != nil || got.Address != "x" {
		t.Errorf("got %+v, %v; want x", got, err)
	}
}
