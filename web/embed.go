//go:build !noweb

package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// FS returns the built console, as the package's comment describes it. ok is false
// in a binary that was built without it (-tags noweb).
func FS() (files fs.FS, ok bool) {
	files, err := fs.Sub(dist, "dist")
	return files, err == nil
}
