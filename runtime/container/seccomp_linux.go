package container

import (
	"fmt"
	"os"
	"path/filepath"
)

// filterName is the seccomp program in the helper's directory.
const filterName = "seccomp.bpf"

// writeFilter puts the seccomp program where containers see it.
func writeFilter(dir string) error {
	program, err := filter()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, filterName)
	if err := os.WriteFile(path+".new", program, 0o444); err != nil {
		return fmt.Errorf("write seccomp filter: %w", err)
	}
	return os.Rename(path+".new", path)
}
