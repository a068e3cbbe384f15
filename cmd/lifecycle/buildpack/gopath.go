package buildpack

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// godepsFile names the dependencies of an app from before Go's modules, godirFile its import path.
const (
	godepsFile = "Godeps/Godeps.json"
	godirFile  = ".godir"
)

// unnamed is the import path of an app that does not say its own.
const unnamed = "app"

// gopath is what is read of an app from before Go's modules: a Godeps.json, or only the import path.
type gopath struct {
	ImportPath string   // of the app
	Packages   []string // to build, from the app's directory; none: its program
	from       string   // what names ImportPath
}

// useGopath lets an app without a go.mod be built by its import path, with the packages of vendor and of Godeps/_workspace: Go looks
// for them below a GOPATH only. end removes what that needs.
func (b *goBuild) useGopath() (end func(), err error) {
	none := func() {}
	if b.has("go.mod") {
		return none, nil
	}
	app, err := b.readGopath()
	if err != nil {
		return none, err
	}
	workspace, err := os.MkdirTemp("", "gopath-")
	if err != nil {
		return none, err
	}
	end = func() { _ = os.RemoveAll(workspace) } // at the latest, with the container
	at := filepath.Join(workspace, "src", filepath.FromSlash(app.ImportPath))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return end, err
	}
	if err := os.Symlink(b.app, at); err != nil {
		return end, err
	}
	b.dir, b.patterns = at, app.Packages
	// Go takes the directory's name from PWD, or it would see where the link leads to.
	b.env = append(b.env, "PWD="+at, "GOPATH="+workspace+string(filepath.ListSeparator)+filepath.Join(b.app, "Godeps", "_workspace"))
	return end, nil
}

// readGopath reads Godeps.json, else GOPACKAGENAME, else .godir.
func (s *stage) readGopath() (gopath, error) {
	text, err := s.readAppFile(godepsFile)
	if err != nil {
		return gopath{}, err
	}
	app := gopath{from: godepsFile + ": ImportPath"}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &app); err != nil {
			return gopath{}, fmt.Errorf("%s: %w", godepsFile, err)
		}
	} else if name := os.Getenv("GOPACKAGENAME"); name != "" {
		app = gopath{ImportPath: name, from: "GOPACKAGENAME"}
	} else if text, err = s.readAppFile(godirFile); err != nil {
		return gopath{}, err
	} else if name := strings.TrimSpace(string(text)); name != "" {
		app = gopath{ImportPath: name, from: godirFile}
	} else {
		app = gopath{ImportPath: unnamed}
	}
	if !filepath.IsLocal(app.ImportPath) || path.Clean(app.ImportPath) != app.ImportPath || app.ImportPath == "." {
		return gopath{}, fmt.Errorf("%s %q is not an import path, like github.com/me/app", app.from, app.ImportPath)
	}
	return app, nil
}
