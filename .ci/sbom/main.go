// Command sbom lists what cupola is made of: the Go modules that the build
// information of its programs names, Go's standard library, and the console's scripts.
// It writes two files into a directory: sbom.cdx.json, of CycloneDX, and
// LICENSES.txt, with the terms of each part as its authors ship them.
//
//	sbom VERSION VENDOR OUT PROGRAM...
//
// VENDOR is web/vendor, and the programs are bin/cupola and those that it has in
// it. Equal inputs give equal files: there is no time and no
// random number in them.
package main

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: sbom VERSION VENDOR OUT PROGRAM...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// part is one thing that the binary is made of.
type part struct {
	name, version, purl string
	sum                 string // of a module, as go.sum has it
	dir                 string // with the files of its licence
}

func run(version, vendor, out string, programs []string) error {
	parts, err := vendored(vendor)
	if err != nil {
		return err
	}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return err
		}
		more, err := modules(info)
		if err != nil {
			return err
		}
		parts = append(parts, more...)
	}
	slices.SortFunc(parts, func(a, b part) int { return strings.Compare(a.purl, b.purl) })
	parts = slices.Compact(parts)
	if err := writeBOM(filepath.Join(out, "sbom.cdx.json"), version, parts); err != nil {
		return err
	}
	return writeLicences(filepath.Join(out, "LICENSES.txt"), parts)
}

// modules are Go's standard library and the modules of a binary.
func modules(info *debug.BuildInfo) ([]part, error) {
	root, err := command("go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	version := strings.TrimPrefix(info.GoVersion, "go")
	parts := []part{{name: "std", version: version, purl: "pkg:golang/std@" + version, dir: root}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		dir, err := command("go", "mod", "download", "-json", m.Path+"@"+m.Version)
		if err != nil {
			return nil, err
		}
		found := regexp.MustCompile(`"Dir": "(.*)"`).FindStringSubmatch(dir)
		if found == nil {
			return nil, fmt.Errorf("%s@%s: it is not in the module cache", m.Path, m.Version)
		}
		parts = append(parts, part{m.Path, m.Version, "pkg:golang/" + m.Path + "@" + m.Version, m.Sum, found[1]})
	}
	return parts, nil
}

// vendored are the scripts of the console: the file VERSION of each says
// "NAME VERSION (npm)".
func vendored(dir string) ([]part, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "VERSION"))
	if err != nil {
		return nil, err
	}
	var parts []part
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		words := strings.Fields(string(text))
		if len(words) < 2 {
			return nil, fmt.Errorf("%s: want NAME VERSION", file)
		}
		name, version := words[0], words[1]
		parts = append(parts, part{name, version, "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + version, "", filepath.Dir(file)})
	}
	return parts, nil
}

func writeBOM(file, version string, parts []part) error {
	const name = "cupola"
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{BOMRef: name, Type: cyclonedx.ComponentTypeApplication, Name: name, Version: version}}
	var all []cyclonedx.Component
	var refs []string
	for _, p := range parts {
		c := cyclonedx.Component{BOMRef: p.purl, Type: cyclonedx.ComponentTypeLibrary, Name: p.name, Version: p.version, PackageURL: p.purl}
		if p.sum != "" {
			c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: p.sum}}
		}
		all, refs = append(all, c), append(refs, p.purl)
	}
	bom.Components = &all
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: name, Dependencies: &refs}}
	var b bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&b, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}

var licence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents)([.-].*)?$`)

func writeLicences(file string, parts []part) error {
	var b strings.Builder
	b.WriteString("cupola contains the following. Each part has these terms.\n")
	var errs []error
	for _, p := range parts {
		entries, err := os.ReadDir(p.dir)
		if err != nil {
			return err
		}
		entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.IsDir() || !licence.MatchString(e.Name()) })
		if len(entries) == 0 {
			errs = append(errs, fmt.Errorf("%s %s has no file of its licence", p.name, p.version))
		}
		for _, e := range entries {
			text, err := os.ReadFile(filepath.Join(p.dir, e.Name()))
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "\n%[1]s\n%[2]s %[3]s: %[4]s\n%[1]s\n\n%[5]s\n", strings.Repeat("=", 80), p.name, p.version, e.Name(), bytes.TrimSpace(text))
		}
	}
	return errors.Join(append(errs, os.WriteFile(file, []byte(b.String()), 0o644))...)
}

func command(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
