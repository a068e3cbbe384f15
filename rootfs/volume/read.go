package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Read calls f with the files of a volume; ErrNone says that there is none. No link leads
// out of it. No volume is copied, enlarged or removed meanwhile: f must be quick, and wait
// for no client.
func (s *Store) Read(name string, f func(*os.Root) error) error {
	dir, err := s.dir(name)
	if err != nil {
		return err
	}
	s.saving.Lock()
	defer s.saving.Unlock()
	if _, err := os.Lstat(filepath.Join(dir, whole)); errors.Is(err, os.ErrNotExist) {
		return ErrNone
	}
	data, err := s.open(name)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(data)
	if err != nil {
		return fmt.Errorf("read volume %s: %w", name, err)
	}
	return errors.Join(f(root), root.Close())
}
