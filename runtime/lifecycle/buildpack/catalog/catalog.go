// Package catalog lists the system buildpacks and makes their files. It is
// apart from their code, which runs in containers only, so that the daemon
// need not carry that.
package catalog

import "fmt"

// Version is that of all system buildpacks: the lifecycle program does their
// work, so they change together.
const Version = "1.0.0"

// Buildpack is a system buildpack.
type Buildpack struct {
	Name     string // as in `cf buildpacks`
	Language string // as in its manifest.yml; says which code serves it
}

// File is a file of a buildpack's archive.
type File struct {
	Path string
	Mode uint32 // permission bits
	Text string
}

// Buildpacks returns them in the order of detection: Cloud Foundry's, the
// binary buildpack, which takes what nobody else does, last.
func Buildpacks() []Buildpack {
	return []Buildpack{
		{"staticfile_buildpack", "staticfile"},
		{"ruby_buildpack", "ruby"},
		{"nodejs_buildpack", "nodejs"},
		{"go_buildpack", "go"},
		{"python_buildpack", "python"},
		{"binary_buildpack", "binary"},
	}
}

// Files returns the buildpack's files, in order. The scripts have program,
// the lifecycle program's path in containers, as their interpreter.
func (b Buildpack) Files(program string) []File {
	files := []File{
		{"VERSION", 0o644, Version + "\n"},
		{"manifest.yml", 0o644, fmt.Sprintf("language: %s\n", b.Language)},
	}
	for _, script := range []string{"detect", "finalize", "release", "supply"} {
		files = append(files, File{"bin/" + script, 0o755, "#!" + program + " buildpack\n"})
	}
	return files
}
