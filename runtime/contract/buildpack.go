package contract

import "fmt"

// BuildpackVersion is the version of all system buildpacks: Helper does their
// work, so they change together. Names and order are Cloud Foundry's; the
// version and the code are cupola's.
const BuildpackVersion = "1.0.0"

// Buildpack is a system buildpack.
type Buildpack struct {
	Name     string // as in `cf buildpacks`
	Language string // as in its manifest.yml; says which code serves it
}

// BuildpackFile is a file of a buildpack's archive.
type BuildpackFile struct {
	Path string
	Mode uint32 // permission bits
	Text string
}

// Buildpacks returns them in the order of detection: Cloud Foundry's, and last
// the binary buildpack, which takes what no other one does.
func Buildpacks() []Buildpack {
	return []Buildpack{
		{"staticfile_buildpack", "staticfile"},
		{"java_buildpack", "java"},
		{"ruby_buildpack", "ruby"},
		{"nodejs_buildpack", "nodejs"},
		{"go_buildpack", "go"},
		{"python_buildpack", "python"},
		{"php_buildpack", "php"},
		{"nginx_buildpack", "nginx"},
		{"binary_buildpack", "binary"},
	}
}

// Files returns the buildpack's files, in order. The scripts name helper, a path
// in the container, as their interpreter.
func (b Buildpack) Files(helper string) []BuildpackFile {
	files := []BuildpackFile{
		{"VERSION", 0o644, BuildpackVersion + "\n"},
		{"manifest.yml", 0o644, fmt.Sprintf("language: %s\n", b.Language)},
	}
	for _, script := range []string{"detect", "finalize", "release", "supply"} {
		files = append(files, BuildpackFile{"bin/" + script, 0o755, "#!" + helper + " buildpack\n"})
	}
	return files
}
