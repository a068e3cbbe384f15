package databroker

import (
	"path/filepath"
	"testing"
)

// TestExampleFiles holds that the examples can be offered together.
func TestExampleFiles(t *testing.T) {
	o := Load([]string{"redis", "../../examples/services"})
	if files, err := filepath.Glob("../../examples/services/*.yml"); err != nil || len(o.Faults) != 0 || len(o.Files) != len(files) || len(files) < 2 {
		t.Errorf("got %d files of %v, %v, and faults %v", len(o.Files), files, err, o.Faults)
	}
}
