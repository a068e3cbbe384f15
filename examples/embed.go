// Package examples holds small apps that show what cupola runs, one folder each, and embeds the one that `cupola demo` pushes.
//
// Every app stands alone: it has its own manifest.yml and README.md, needs no network to stage, and can be pushed to any Cloud
// Foundry. The Go app has its own go.mod, so it does not belong to this module.
package examples

import (
	"embed"
	"io/fs"
)

//go:embed demo
var files embed.FS

// Demo returns the source of the demo app, manifest.yml at its root: a static site, so that it stages on every stack.
// Its name in the manifest is "demo".
func Demo() fs.FS {
	sub, err := fs.Sub(files, "demo")
	if err != nil {
		panic(err) // the path is a constant and valid
	}
	return sub
}
