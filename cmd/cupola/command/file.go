package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"cupola/runtime/durable"
)

// WriteFile writes a file that only its owner may read. The file gets its name
// when it is complete and on disk.
func WriteFile(name string, write func(io.Writer) error) (size int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".") // 0600
	if fault, ok := errors.AsType[*fs.PathError](err); ok {
		return 0, fmt.Errorf("write %s: %w", name, fault.Err) // the caller does not know the temporary file
	}
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name()) // unless it has another name by then
	err = write(f)
	info, serr := f.Stat()
	if err = errors.Join(err, serr, f.Close()); err != nil {
		return 0, err
	}
	return info.Size(), durable.Rename(f.Name(), name)
}

// Interrupted returns err, or that the user interrupted the command.
func Interrupted(e *Env, err error) error {
	if err != nil && e.Ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}
