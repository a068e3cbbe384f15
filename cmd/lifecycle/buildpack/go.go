package buildpack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cupola/runtime/pattern"
)

// goPackage is a package that `go list` found.
type goPackage struct {
	path  string // import path
	name  string // of the package; "main" is a program
	fault string // why Go cannot read it; "" if it can
}

// goMarkers are the files that make an app Go's, also without a Go file where this would look for one (go-buildpack: bin/detect).
var goMarkers = []string{"go.mod", godepsFile, godirFile, "Gopkg.toml", "glide.yaml"}

// detectGo takes an app with one of goMarkers, and one with Go files that vendors its packages or names its own in GOPACKAGENAME.
func detectGo(app string) bool {
	if slices.ContainsFunc(goMarkers, func(name string) bool { return exists(filepath.Join(app, name)) }) {
		return true
	}
	return (exists(filepath.Join(app, "vendor")) || os.Getenv("GOPACKAGENAME") != "") && hasGoFile(app)
}

// hasGoFile reports whether there is a Go file anywhere below dir.
func hasGoFile(dir string) bool {
	errFound := errors.New("found")
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && filepath.Ext(path) == ".go" {
			return errFound
		}
		return nil // what cannot be read has no Go file
	})
	return errors.Is(err, errFound)
}

// goBuild is one staging of a Go app.
type goBuild struct {
	*stage
	tool     string // the go command
	env      []string
	dir      string   // where it runs; "" is the app's directory
	patterns []string // what Godeps.json names to build
}

// finalizeGo compiles the app's programs into bin/.
func finalizeGo(s *stage) (string, error) {
	tool, err := s.find("go", "build the program where Go is (CGO_ENABLED=0 go build) and push it with -b binary_buildpack",
		[]string{"go"}, "/usr/local/go/bin", "/usr/lib/go/bin", "/usr/lib/go-*/bin")
	if err != nil {
		return "", err
	}
	w, err := s.goRequirement()
	if err != nil {
		return "", err
	}
	chosen, err := s.choose("Go", w, s.findAll(tool, "version", "/usr/local/go/bin/go", "/usr/lib/go-*/bin/go"))
	if err != nil {
		return "", err
	}
	s.step("Using go%s of the stack", chosen.version)
	b := goBuild{stage: s, tool: chosen.path, env: s.goEnvironment()}
	end, err := b.useGopath()
	if err != nil {
		return "", err
	}
	defer end()
	programs, err := b.packages()
	if err != nil {
		return "", err
	}
	// go-buildpack: data.GoScript.
	if err := s.profileScript("go", "PATH=$PATH:$HOME/bin"); err != nil {
		return "", err
	}
	return b.compile(programs)
}

// goLine is the least version of Go that a go.mod accepts.
var goLine = pattern.Lazy(`(?m)^go\s+([0-9.]+)`)

// goRequirement reads go.mod. An old Go would compile the app and fail on what it does not know; GOTOOLCHAIN lets Go get the version itself.
func (s *stage) goRequirement() (requirement, error) {
	text, err := s.readAppFile("go.mod")
	m := goLine().FindSubmatch(text)
	if toolchain := os.Getenv("GOTOOLCHAIN"); err != nil || m == nil || toolchain != "" && toolchain != "local" {
		return requirement{}, err
	}
	return requirement{from: "go.mod", constraint: ">=" + string(m[1])}, nil
}

// goEnvironment makes the build static, offline where it can be, and its
// caches part of the app's build cache. What the user sets has precedence.
func (s *stage) goEnvironment() []string {
	env := []string{"GOENV=off", "GOBIN=", "GO111MODULE=on"}
	defaults := map[string]string{
		"CGO_ENABLED": "0", "GOTOOLCHAIN": "local",
		"GOCACHE": filepath.Join(s.cache, "go-build"), "GOPATH": filepath.Join(s.cache, "go"),
	}
	for name, value := range defaults {
		if os.Getenv(name) == "" {
			env = append(env, name+"="+value)
		}
	}
	flags := os.Getenv("GOFLAGS")
	if s.has("vendor") && s.has("go.mod") && !strings.Contains(flags, "-mod=") {
		flags += " -mod=vendor"
	} else {
		flags += " -modcacherw" // or the cache could not be cleaned
	}
	if !s.has("go.mod") {
		env = append(env, "GO111MODULE=off")
	}
	return append(env, "GOFLAGS="+strings.TrimSpace(flags+" -buildvcs=false"))
}

// packages are what to build: what GO_INSTALL_PACKAGE_SPEC names, the app's
// own directory, or the only program below it.
func (b goBuild) packages() ([]goPackage, error) {
	spec := strings.Fields(os.Getenv("GO_INSTALL_PACKAGE_SPEC"))
	pattern := spec
	if len(spec) == 0 {
		pattern = b.patterns
	}
	if len(pattern) == 0 {
		here, err := b.list(".")
		if err != nil {
			return nil, err
		}
		if len(here) == 1 && here[0].name == "main" {
			return here, nil
		}
		pattern = []string{"./..."}
	}
	all, err := b.list(pattern...)
	if err != nil {
		return nil, err
	}
	programs, err := choosePrograms(all, len(spec) > 0)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if p.fault != "" {
			b.warn("go list: %s", p.fault)
		}
	}
	return programs, nil
}

// choosePrograms returns the programs among packages. Several are accepted only
// if the user named them. The error says why Go cannot read a package that it
// leaves out.
func choosePrograms(all []goPackage, named bool) ([]goPackage, error) {
	var programs []goPackage
	var names, faults []string
	for _, p := range all {
		if p.name == "main" {
			programs = append(programs, p)
			names = append(names, p.path)
		}
		if p.fault != "" {
			faults = append(faults, p.fault)
		}
	}
	switch {
	case len(faults) > 0 && (named || len(programs) == 0):
		return nil, fmt.Errorf("go list: %s", strings.Join(faults, "\n"))
	case len(programs) == 0:
		return nil, errors.New("the app has no package main")
	case len(programs) > 1 && !named:
		return nil, fmt.Errorf("the app has several programs: set GO_INSTALL_PACKAGE_SPEC to one or more of %s", strings.Join(names, " "))
	}
	return programs, nil
}

// packageFormat prints a package on one line, as three quoted texts: its import
// path, its name and what is wrong with it.
const packageFormat = `{{printf "%q" .ImportPath}} {{printf "%q" .Name}} {{with .Error}}{{printf "%q" (printf "%s: %s" .Pos .Err)}}{{else}}""{{end}}`

// list asks Go for packages, those that it cannot read among them.
func (b goBuild) list(patterns ...string) ([]goPackage, error) {
	argv := append([]string{b.tool, "list", "-e", "-find", "-f", packageFormat}, patterns...)
	out, err := b.output(call{argv: argv, dir: b.dir, env: b.env})
	if err != nil {
		return nil, err
	}
	var all []goPackage
	for line := range strings.Lines(out) {
		var p goPackage
		if _, err := fmt.Sscanf(line, "%q %q %q", &p.path, &p.name, &p.fault); err != nil {
			return nil, fmt.Errorf("go list: unexpected line %q: %w", line, err)
		}
		p.fault = strings.TrimPrefix(p.fault, ": ")
		if isEmptyPackage(p.fault) {
			p.fault = ""
		}
		all = append(all, p)
	}
	return all, nil
}

// isEmptyPackage reports whether a package's fault is only that it has no Go
// files for this machine.
func isEmptyPackage(fault string) bool {
	return strings.HasPrefix(fault, "no Go files in ") || strings.HasPrefix(fault, "build constraints exclude all Go files in ")
}

func (b goBuild) compile(programs []goPackage) (string, error) {
	if isEmptyDirectory(filepath.Join(b.cache, "go-build")) && os.Getenv("GOCACHE") == "" {
		b.info("The app's first build compiles Go's standard library as well; later ones find it in the cache.")
	}
	for _, p := range programs {
		name := p.program()
		b.step("Running: go build -o bin/%s %s", name, p.path)
		argv := []string{b.tool, "build", "-trimpath", "-tags", "cloudfoundry", "-o", filepath.Join(b.app, "bin", name)}
		if symbol := os.Getenv("GO_LINKER_SYMBOL"); symbol != "" {
			argv = append(argv, "-ldflags", "-X "+symbol+"="+os.Getenv("GO_LINKER_VALUE"))
		}
		if err := b.run(call{argv: append(argv, p.path), dir: b.dir, env: b.env}); err != nil {
			b.adviseOnPackages()
			return "", err
		}
	}
	return "./bin/" + quoteShell(programs[0].program()), nil
}

// adviseOnPackages says how to push what a failed build may lack.
func (b goBuild) adviseOnPackages() {
	switch {
	case b.has("go.mod") && !b.has("vendor/modules.txt"):
		b.info("If modules could not be fetched: run `go mod vendor` and push again, or set GOPROXY to one the stack reaches.")
	case !b.has("go.mod"):
		b.info("If packages are missing: push them in vendor, and name the app's own import path in GOPACKAGENAME; or give the app a go.mod.")
	}
}

// program is the name `go install` gives the package's program.
func (p goPackage) program() string {
	base := path.Base(p.path)
	if isMajor(base) && strings.Contains(p.path, "/") {
		base = path.Base(path.Dir(p.path))
	}
	if base == "." || base == "/" || strings.HasPrefix(base, "_") {
		return "app"
	}
	return base
}

// isMajor reports whether s is a module's major version suffix, as v2.
func isMajor(s string) bool {
	return len(s) > 1 && s[0] == 'v' && strings.Trim(s[1:], "0123456789") == ""
}
