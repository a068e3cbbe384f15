// Package examples holds small apps that show what cupola runs, one folder each, and embeds those that `cupola demo` and the web
// console push, and the service files that are built in.
//
// Every app stands alone: it has its own manifest.yml and README.md, needs no network to stage, and can be pushed to any Cloud
// Foundry. The Go app has its own go.mod and so is not part of this module.
package examples

import (
	"embed"
	"io/fs"
)

//go:embed demo static node python ruby procfile services/*.yml
var files embed.FS

// ServiceFiles are the names of the services whose files are embedded, in the order in which they are offered.
var ServiceFiles = []string{"s3", "memcached"}

// ServiceFile returns the service file of a service. Its name must be one of ServiceFiles.
func ServiceFile(name string) []byte {
	text, err := files.ReadFile("services/" + name + ".yml")
	if err != nil {
		panic(err) // the names are constant and valid
	}
	return text
}

// Names are the embedded apps, in the order in which they are offered.
var Names = []string{"demo", "static", "node", "python", "ruby", "procfile"}

// Demo returns the source of the demo app, manifest.yml at its root: a static site, so that it stages on every stack.
// Its name in the manifest is "demo".
func Demo() fs.FS { return Source("demo") }

// Source returns the source of an embedded app, manifest.yml and README.md at its root. Its name must be one of Names.
func Source(name string) fs.FS {
	sub, err := fs.Sub(files, name)
	if err != nil {
		panic(err) // the names are constant and valid
	}
	return sub
}
