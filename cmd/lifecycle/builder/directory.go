package builder

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"cupola/runtime/contract"
)

// finalCache is the directory of the last buildpack in the build cache.
const finalCache = "final"

// makeDirectories creates what the scripts are given and empties the cache of
// buildpacks that no longer take part.
func (b *builder) makeDirectories() error {
	contents, err := os.MkdirTemp("", "contents")
	if err != nil {
		return err
	}
	b.contents = contents
	dirs := []string{
		filepath.Dir(b.outputDroplet), filepath.Dir(b.outputMetadata), filepath.Dir(b.outputCache),
		b.profileDir(), filepath.Join(contents, "tmp"), filepath.Join(contents, "logs"),
		filepath.Join(b.cacheDir, finalCache),
	}
	for i := range len(b.suppliers()) + 1 {
		dirs = append(dirs, filepath.Join(b.depsDir(), b.depsIndex(i)))
	}
	for _, name := range b.suppliers() {
		dirs = append(dirs, filepath.Join(b.cacheDir, contract.BuildpackDir(name)))
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return b.cleanCache()
}

func (b *builder) cleanCache() error {
	entries, err := os.ReadDir(b.cacheDir)
	if err != nil {
		return err
	}
	kept := []string{finalCache}
	for _, name := range b.suppliers() {
		kept = append(kept, contract.BuildpackDir(name))
	}
	for _, e := range entries {
		if slices.Contains(kept, e.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(b.cacheDir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) depsDir() string    { return filepath.Join(b.contents, "deps") }
func (b *builder) profileDir() string { return filepath.Join(b.contents, "profile.d") }

// buildpackDir finds the directory that holds the buildpack's bin/. Archives
// of source hosts keep everything in one directory, so one level is skipped.
func (b *builder) buildpackDir(name string) (string, error) {
	for _, parent := range []string{b.buildpacksDir, b.downloadDir} {
		dir := filepath.Join(parent, contract.BuildpackDir(name))
		if exists(filepath.Join(dir, "bin")) {
			return dir, nil
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		if len(entries) == 1 && exists(filepath.Join(dir, entries[0].Name(), "bin")) {
			return filepath.Join(dir, entries[0].Name()), nil
		}
		return "", fmt.Errorf("malformed buildpack does not contain a /bin dir: %s", name)
	}
	dir := filepath.Join(b.buildpacksDir, contract.BuildpackDir(name))
	return "", failure{code: 1, text: fmt.Sprintf("Failed to read buildpack directory '%s' for buildpack '%s'", dir, name)}
}
