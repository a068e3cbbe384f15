package buildpack

import (
	"os"
	"path/filepath"
)

// supplyPrograms puts this program into the droplet under these names, which it acts by: a droplet must run where this staging's
// lifecycle is not.
func (s *stage) supplyPrograms(names ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	bin := filepath.Join(s.deps, "bin")
	for _, dir := range []string{bin, filepath.Join(s.deps, "libexec")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := copyFile(filepath.Join(s.deps, "libexec", "lifecycle"), self, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Symlink("../libexec/lifecycle", filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	return nil
}
