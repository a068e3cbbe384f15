package lifecycle

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"cupola/runtime/contract"
	"cupola/runtime/packed"
)

// WriteTar writes the programs as the layer of an image, at contract.ProgramDir with links in contract.LifecycleDir:
// equal bytes for equal builds of the daemon.
func WriteTar(w io.Writer) error { return writeTar(w, inImages()) }

// WriteStagerTar is WriteTar with what stages an app in a pod.
func WriteStagerTar(w io.Writer) error { return writeTar(w, ofStagings()) }

func writeTar(w io.Writer, names []string) error {
	t := tar.NewWriter(w)
	place, shown := strings.TrimPrefix(contract.ProgramDir, "/"), strings.TrimPrefix(contract.LifecycleDir, "/")
	for _, dir := range []struct {
		name string
		mode int64
	}{{place, 0o755}, {path.Dir(shown), 0o1777}, {shown, 0o755}} {
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir.name + "/", Mode: dir.mode, ModTime: time.Unix(0, 0)}); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := writeProgram(t, path.Join(place, name), name); err != nil {
			return err
		}
	}
	links := map[string]string{}
	for name, target := range contract.Links() {
		links[path.Join(place, name)] = target
		links[path.Join(shown, name)] = path.Join(contract.ProgramDir, target)
	}
	for _, name := range names {
		links[path.Join(shown, name)] = path.Join(contract.ProgramDir, name)
	}
	for _, name := range slices.Sorted(maps.Keys(links)) {
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: links[name], Mode: 0o777, ModTime: time.Unix(0, 0)}); err != nil {
			return err
		}
	}
	return t.Close()
}

// OpenHelper opens the program contract.Helper. The caller closes it.
func OpenHelper() (*packed.Program, error) { return open(programs, "lifecycle") }

// HelperDigest identifies the bytes of the helper.
var HelperDigest = sync.OnceValues(func() (string, error) {
	p, err := OpenHelper()
	if err != nil {
		return "", err
	}
	defer p.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, p)
	return hex.EncodeToString(sum.Sum(nil)[:16]), err
})

func writeProgram(t *tar.Writer, at, name string) error {
	program, err := open(programs, name)
	if err != nil {
		return err
	}
	defer func() { _ = program.Close() }()
	if err := t.WriteHeader(&tar.Header{Name: at, Mode: 0o755, Size: program.Size, ModTime: time.Unix(0, 0)}); err != nil {
		return err
	}
	_, err = io.Copy(t, program)
	return err
}
