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
	Takes    string // what its detection looks for, after "looks for"
}

// BuildpackFile is a file of a buildpack's archive.
type BuildpackFile struct {
	Path string
	Mode uint32 // permission bits
	Text string
}

// Buildpacks returns them in the order of detection: Cloud Foundry's, and last
// those that take what no other one does.
func Buildpacks() []Buildpack {
	return []Buildpack{
		{"staticfile_buildpack", "staticfile", "a file Staticfile"},
		{"java_buildpack", "java", "a jar or war or its content, classes, or a distribution with bin and lib"},
		{"ruby_buildpack", "ruby", "a Gemfile"},
		{"dotnet_core_buildpack", "dotnet-core", "a published app with a *.runtimeconfig.json, or a project file"},
		{"nodejs_buildpack", "nodejs", "a package.json"},
		{"go_buildpack", "go", "a go.mod, or Go files with a vendor directory"},
		{"python_buildpack", "python", "requirements.txt, setup.py, environment.yml or Pipfile"},
		{"php_buildpack", "php", "a composer.json, or a PHP file up to two directories down"},
		{"nginx_buildpack", "nginx", "a nginx.conf"},
		{"r_buildpack", "r", "a r.yml"},
		{"rust_buildpack", "rust", "a Cargo.toml"},
		{"procfile_buildpack", "procfile", "a Procfile whose program the app or the stack has"},
		{"binary_buildpack", "binary", "a single executable file"},
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
