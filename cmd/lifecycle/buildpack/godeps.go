package buildpack

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// godepsFile names the dependencies of an app from before Go's modules.
const godepsFile = "Godeps/Godeps.json"

// godeps is what is read of a Godeps.json.
type godeps struct {
	ImportPath string   // of the app
	Packages   []string // to build, relative to the app; none: the app's own directory
}

// useGodeps lets an app with a Godeps.json and no go.mod be built by its import path, with
// the packages of Godeps/_workspace, as godep does. end removes what that needs.
func (b *goBuild) useGodeps() (end func(), err error) {
	none := func() {}
	text, err := b.readAppFile(godepsFile)
	if err != nil || len(text) == 0 || b.has("go.mod") {
		return none, err
	}
	var deps godeps
	if err := json.Unmarshal(text, &deps); err != nil {
		return none, fmt.Errorf("%s: %w", godepsFile, err)
	}
	if !filepath.IsLocal(deps.ImportPath) || path.Clean(deps.ImportPath) != deps.ImportPath || deps.ImportPath == "." {
		return none, fmt.Errorf("%s: ImportPath %q is not an import path, like github.com/me/app", godepsFile, deps.ImportPath)
	}
	workspace, err := os.MkdirTemp("", "gopath-")
	if err != nil {
		return none, err
	}
	end = func() { _ = os.RemoveAll(workspace) } // at the latest, with the container
	at := filepath.Join(workspace, "src", filepath.FromSlash(deps.ImportPath))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return end, err
	}
	if err := os.Symlink(b.app, at); err != nil {
		return end, err
	}
	b.deps = &deps
	b.env = append(b.env, "GOPATH="+workspace+string(filepath.ListSeparator)+filepath.Join(b.app, "Godeps", "_workspace"))
	return end, nil
}

// patterns are the packages to build, by their import paths.
func (d *godeps) patterns() []string {
	if len(d.Packages) == 0 {
		return []string{d.ImportPath}
	}
	var all []string
	for _, p := range d.Packages {
		if p == "." || strings.HasPrefix(p, "./") {
			p = path.Join(d.ImportPath, p)
		}
		all = append(all, p)
	}
	return all
}
