package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpenSaysWhatItCannot has the first part fail to open: what was opened is
// closed, and nothing else.
func TestOpenSaysWhatItCannot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := open(t.Context(), Config{DataDir: file})
	if err == nil || h != nil || !strings.Contains(err.Error(), "open the data directory") {
		t.Errorf("got %v, %v; want what could not be opened", h, err)
	}
}
