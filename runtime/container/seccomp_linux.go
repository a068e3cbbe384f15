package container

import (
	"fmt"
	"path/filepath"

	"cupola/runtime/durable"
)

// filterName is the seccomp program in the helper's directory.
const filterName = "seccomp.bpf"

// writeFilter puts the seccomp program where containers see it.
func writeFilter(dir string) error {
	program, err := filter()
	if err != nil {
		return err
	}
	if err := durable.Ensure(filepath.Join(dir, filterName), program, 0o444); err != nil {
		return fmt.Errorf("write seccomp filter: %w", err)
	}
	return nil
}
