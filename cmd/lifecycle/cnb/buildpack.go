package cnb

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"cupola/cmd/lifecycle/toml"
)

// The buildpack APIs that are supported: those of lifecycles with the platform API 0.14.
const (
	oldestAPI = "0.7"
	newestAPI = "0.12"
)

// descriptor is a buildpack.toml.
type descriptor struct {
	API       string `json:"api"`
	Buildpack struct {
		ID          string   `json:"id"`
		Name        string   `json:"name"`
		Version     string   `json:"version"`
		Homepage    string   `json:"homepage"`
		ClearEnv    bool     `json:"clear-env"`
		SBOMFormats []string `json:"sbom-formats"`
	} `json:"buildpack"`
	Order   []group  `json:"order"` // of a composite buildpack
	Targets []target `json:"targets"`

	dir string
}

// group is one alternative of an order.
type group struct {
	Group []element `json:"group"`
}

// element names a buildpack of a group.
type element struct {
	ID       string `json:"id"`
	Version  string `json:"version,omitempty"`
	Optional bool   `json:"optional,omitempty"`
}

func (e element) String() string {
	if e.Version == "" {
		return e.ID
	}
	return e.ID + "@" + e.Version
}

func (d *descriptor) String() string { return d.element().String() }

func (d *descriptor) element() element {
	return element{ID: d.Buildpack.ID, Version: d.Buildpack.Version}
}

// atLeast reports whether a buildpack has an API or a later one.
func (d *descriptor) atLeast(api string) bool { return compareAPI(d.API, api) >= 0 }

// compareAPI compares versions of an API, major.minor. What is not a version comes first.
func compareAPI(a, b string) int {
	part := func(s string, i int) int {
		fields := append(strings.SplitN(s, ".", 2), "0")
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			return -1
		}
		return n
	}
	return cmp.Or(cmp.Compare(part(a, 0), part(b, 0)), cmp.Compare(part(a, 1), part(b, 1)))
}

// readBuildpack reads the buildpack in a directory. Whether it can be used, check says.
func readBuildpack(dir string) (*descriptor, error) {
	d := &descriptor{dir: dir}
	file := filepath.Join(dir, "buildpack.toml")
	if err := toml.ReadFile(file, d); err != nil {
		return nil, err
	}
	if d.Buildpack.ID == "" {
		return nil, fmt.Errorf("%s has no buildpack.id", file)
	}
	return d, nil
}

// check refuses a buildpack of an API that is not supported, and one without programs.
func (d *descriptor) check() error {
	switch {
	case compareAPI(d.API, oldestAPI) < 0 || compareAPI(d.API, newestAPI) > 0:
		return fmt.Errorf("buildpack %s has the buildpack API %q; supported are %s to %s", d, d.API, oldestAPI, newestAPI)
	case len(d.Order) == 0 && (!isFile(filepath.Join(d.dir, "bin", "detect")) || !isFile(filepath.Join(d.dir, "bin", "build"))):
		return fmt.Errorf("buildpack %s has neither bin/detect and bin/build nor an order", d)
	}
	return nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// escape is the name of a buildpack's directory.
func escape(id string) string { return strings.ReplaceAll(id, "/", "_") }
