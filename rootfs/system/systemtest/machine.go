package systemtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Machine makes a directory that looks like a machine's root: names that end in / are directories, "a -> b" are links.
func Machine(t *testing.T, names ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, n := range names {
		from, to, isLink := strings.Cut(n, " -> ")
		path := filepath.Join(root, from)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case err != nil:
		case isLink:
			err = os.Symlink(to, path)
		case strings.HasSuffix(n, "/"):
			err = os.MkdirAll(path, 0o755)
		default:
			err = os.WriteFile(path, []byte("x"), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}
