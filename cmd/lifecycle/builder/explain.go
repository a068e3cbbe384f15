package builder

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cupola/runtime/contract"
)

// explain says what the buildpacks looked for, and what the app probably is.
func (b *builder) explain() {
	fmt.Fprintln(b.stderr, "No buildpack takes this app. It has: "+listing(b.buildDir))
	for _, p := range contract.Buildpacks() {
		if slices.Contains(b.order, p.Name) {
			fmt.Fprintf(b.stderr, "       %-22s looks for %s\n", p.Name, p.Takes)
		}
	}
	if guess := guess(b.buildDir); guess != "" {
		fmt.Fprintln(b.stderr, "Nearest guess: "+guess)
	}
}

// listed is how many names of the app's directory are shown.
const listed = 12

func listing(dir string) string {
	entries, _ := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	switch {
	case len(names) == 0:
		return "nothing, the directory is empty"
	case len(names) > listed:
		return strings.Join(names[:listed], " ") + fmt.Sprintf(" and %d more", len(names)-listed)
	}
	return strings.Join(names, " ")
}

// guesses are what files probably mean, the surest first.
var guesses = []struct{ pattern, text string }{
	{"Dockerfile", "a Dockerfile is not built here: build the image, push it to a registry, and cf push APP --docker-image IMAGE"},
	{"*.csproj", "a .NET project: dotnet publish -c Release -o publish, then cf push -p publish"},
	{"manage.py", "a Django app: add a requirements.txt"},
	{"pyproject.toml", "a Python app: add a requirements.txt (pip freeze > requirements.txt)"},
	{"*.py", "a Python app: add a requirements.txt, which may be empty"},
	{"config.ru", "a Ruby app: add a Gemfile"},
	{"*.rb", "a Ruby app: add a Gemfile"},
	{"deno.json", "a Deno app, for which there is no buildpack: compile it (deno compile) and push the program"},
	{"*.js", "a Node.js app: add a package.json (npm init -y)"},
	{"*.ts", "a Node.js app: add a package.json (npm init -y)"},
	{"*.go", "a Go app: add a go.mod (go mod init NAME)"},
	{"*.rs", "a Rust app: add a Cargo.toml (cargo init)"},
	{"mix.exs", "an Elixir app: name a buildpack by its URL, cf push -b URL"},
	{"*.R", "a R app: add a r.yml"},
	{"index.html", "a site: add an empty file Staticfile (touch Staticfile)"},
	{"*.html", "a site: add an empty file Staticfile (touch Staticfile)"},
	{"*.zip", "an archive, which is not unpacked: cf push -p FILE.zip pushes its content"},
}

// guess says what an app probably is; "" means no idea.
func guess(dir string) string {
	entries, _ := os.ReadDir(dir)
	if i := slices.IndexFunc(entries, func(e os.DirEntry) bool { return e.Name() == "Procfile" }); i >= 0 {
		return "the Procfile starts a program that neither the app nor its stack has: push with -s and a stack that has it (cf stacks), or push the program with its execute permission"
	}
	for _, g := range guesses {
		if found, _ := filepath.Glob(filepath.Join(dir, g.pattern)); len(found) > 0 {
			return g.text
		}
	}
	visible := slices.DeleteFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") || e.Name() == "manifest.yml" })
	switch {
	case len(visible) == 0:
		return "the app's directory was empty: check its path and its .cfignore"
	case len(visible) == 1 && visible[0].IsDir():
		return "the app is one directory further down: cf push -p " + visible[0].Name()
	case len(visible) == 1:
		return visible[0].Name() + " is not a program: chmod +x it before the push, or name a start command with -b binary_buildpack -c COMMAND"
	}
	return ""
}
