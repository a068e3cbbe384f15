// Package lifecycle holds the programs that run inside containers, which are
// built from cmd/lifecycle and embedded, and gives the daemon what it needs of
// them: the directory that it mounts at contract.ProgramDir, the layer that an
// image has instead, and the archives of the system buildpacks.
package lifecycle

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"cupola/runtime/contract"
	"cupola/runtime/durable"
	"cupola/runtime/packed"
)

//go:embed all:packed
var programs embed.FS

// installed are the programs of containers here.
func installed() []string { return append(ofStagings(), "init") }

// ofStagings are the programs with which apps are staged in a pod.
func ofStagings() []string { return append(inImages(), "fetch", "fileserver") }

// inImages are the programs of images of droplets, which need no init: other
// platforms bring one.
func inImages() []string { return []string{"launcher", "lifecycle"} }

// errNotBuilt is what Install returns, with the program's name, in a binary
// made by a bare `go build`.
var errNotBuilt = errors.New("built without the lifecycle binary: run make build")

// Install writes the programs and their links into dir, which it creates.
// Each file is replaced at once and only when it differs, so containers that
// have dir mounted are not disturbed.
func Install(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("install lifecycle: %w", err)
	}
	// The directory must be open to every container user, whatever the umask.
	if err := os.Chmod(dir, 0o755); err != nil {
		return fmt.Errorf("install lifecycle: %w", err)
	}
	for _, name := range installed() {
		if err := installProgram(programs, dir, name); err != nil {
			return err
		}
	}
	for name, target := range contract.Links() {
		if err := installLink(filepath.Join(dir, name), target); err != nil {
			return fmt.Errorf("install lifecycle: %w", err)
		}
	}
	return nil
}

func installProgram(programs fs.FS, dir, name string) error {
	program, err := open(programs, name)
	if err != nil {
		return err
	}
	defer func() { _ = program.Close() }()
	head, err := io.ReadAll(io.LimitReader(program, headSize))
	if err != nil {
		return fmt.Errorf("unpack %s: %w", name, err)
	}
	path := filepath.Join(dir, name)
	if sameProgram(path, program.Size, head) {
		return nil
	}
	temp, err := os.CreateTemp(dir, "."+name+"-*")
	if err != nil {
		return fmt.Errorf("install %s: %w", name, err)
	}
	defer func() { _ = os.Remove(temp.Name()) }() // renamed when all went well
	_, err = io.Copy(temp, io.MultiReader(bytes.NewReader(head), program))
	err = errors.Join(err, temp.Chmod(0o755), temp.Close())
	if err == nil {
		err = durable.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("install %s: %w", name, err)
	}
	return nil
}

func open(programs fs.FS, name string) (*packed.Program, error) {
	p, err := packed.Open(programs, "packed/"+name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w (%s is missing)", errNotBuilt, name)
	}
	return p, err
}

// headSize is how much of a program is compared. It holds the linker's build
// ID, which is a hash of the whole; all of it would only have to be unpacked.
const headSize = 64 << 10

// sameProgram reports whether the file at path is the embedded program of that
// size and beginning.
func sameProgram(path string, size int64, head []byte) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Size() != size || info.Mode() != 0o755 {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	begins, err := io.ReadAll(io.LimitReader(f, headSize))
	return err == nil && bytes.Equal(begins, head)
}

func installLink(path, target string) error {
	if old, err := os.Readlink(path); err == nil && old == target {
		return nil
	}
	temp := path + ".new"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, temp); err != nil {
		return err
	}
	return os.Rename(temp, path)
}
