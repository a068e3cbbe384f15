package lifecycle

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"time"

	"cupola/runtime/contract"
)

// SystemBuildpack is a buildpack of cupola.
type SystemBuildpack struct {
	Name     string // as in `cf buildpacks`
	Filename string // as an upload of it would be called
	Zip      []byte // equal for equal builds of the daemon
}

// Buildpacks returns the system buildpacks in the order of detection. Their
// scripts name contract.Helper as their interpreter, so they run on every
// stack, also on one without a shell.
func Buildpacks() []SystemBuildpack {
	var all []SystemBuildpack
	for _, b := range contract.Buildpacks() {
		all = append(all, SystemBuildpack{
			Name:     b.Name,
			Filename: fmt.Sprintf("%s-cupola-v%s.zip", b.Name, contract.BuildpackVersion),
			Zip:      zipFiles(b.Files(contract.Helper)),
		})
	}
	return all
}

// zipFiles packs files with one fixed time, so that equal files make equal
// bytes. Writing to memory cannot go wrong.
func zipFiles(files []contract.BuildpackFile) []byte {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.Path, Method: zip.Deflate, Modified: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
		h.SetMode(fs.FileMode(f.Mode))
		entry, err := w.CreateHeader(h)
		if err == nil {
			_, err = entry.Write([]byte(f.Text))
		}
		if err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return buf.Bytes()
}
