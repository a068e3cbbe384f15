package doctor

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLeadsBelow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, d := range []string{"plain", "linked", "relative", "gone"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"plain/a.pem": "/usr/share/a.crt", "linked/a.pem": "/gone/share/a.crt", "relative/a.pem": "../gone/a.crt"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	points := []string{"/gone", filepath.Join(dir, "gone")}
	for name, want := range map[string]bool{"plain": false, "linked": true, "relative": true, "gone": true, "missing": false, "gone-not": false} {
		if got := leadsBelow(filepath.Join(dir, name), points); got != want {
			t.Errorf("%s: got %v; want %v", name, got, want)
		}
	}
}
