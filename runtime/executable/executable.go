// Package executable says why a command of an app could not be executed, from what the shell said and from the files of the container.
package executable

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"cupola/runtime/pattern"
	"cupola/runtime/suggest"
)

// Files are those of a container, which its processes see.
type Files struct {
	// Open opens a file or a directory for reading. Links are followed within the container.
	Open    func(name string) (*os.File, error)
	Dir     string   // of the command, to which its relative paths belong
	Command string   // of the app
	Path    []string // directories that commands are searched in
	Image   bool     // they are an image's: the app has no stack, and is not pushed from source
}

// all is what the files are of.
func (f Files) all() string {
	if f.Image {
		return "the image"
	}
	return "the app or its stack"
}

// system is what has interpreters and loaders.
func (f Files) system() string {
	if f.Image {
		return "the image"
	}
	return "the app's stack"
}

// What shells and env say of a command that cannot be executed. The name is the first group. Of bash, dash, BusyBox, env, and the
// shell of stacks without one.
var (
	unknown = []func() *regexp.Regexp{
		pattern.Lazy(`(?:^|: )([^\s:/]+): (?:command )?not found$`),
		pattern.Lazy(`^"([^"/]+)": executable file not found in \$PATH$`),
		pattern.Lazy(`env: (?:can't execute )?\$?[‘'"]?([^\s’'":/]+?)(?:\\r)?[’'"]?: No such file or directory$`),
	}
	refused = []func() *regexp.Regexp{
		pattern.Lazy(`(?:^|: )(\S*/\S*): \S+: bad interpreter: `),
		pattern.Lazy(`(?:^|: )(\S*/\S*): (?:cannot execute: required file not found|cannot execute binary file(?:: Exec format error)?|Exec format error|No such file or directory|not found|Permission denied)$`),
		pattern.Lazy(`exec (\S*/\S*): (?:exec format error|no such file or directory|permission denied)$`),
		pattern.Lazy(`^stat (\S*/\S*): no such file or directory$`),
	}
)

// unnamed is what the shell of stacks without one says of a command that may not be executed.
const unnamed = "permission denied"

// Explain says what is wrong with the command that the newest of lines, which a process wrote before it ended, says cannot be
// executed, and how to mend it; "" where it finds nothing.
func (f Files) Explain(lines []string) string {
	for _, line := range slices.Backward(lines) {
		line = strings.TrimSpace(line)
		name := match(refused, line)
		if word, _, _ := strings.Cut(f.Command, " "); line == unnamed && strings.Contains(word, "/") {
			name = word
		}
		if name != "" {
			return f.refused(f.short(name))
		}
		if name := match(unknown, line); name != "" {
			return f.unknown(name, strings.Contains(line, `\r'`))
		}
	}
	return ""
}

// short is the name of a file of the app as a start command has it. An image's commands have whole paths.
func (f Files) short(name string) string {
	if below, found := strings.CutPrefix(name, f.Dir+"/"); found && f.Command != "" {
		return "./" + below
	}
	return name
}

func match(patterns []func() *regexp.Regexp, line string) string {
	for _, p := range patterns {
		if m := p().FindStringSubmatch(line); m != nil {
			return m[1]
		}
	}
	return ""
}

// unknown explains a command that is not on the path. It is of a script with CR LF at the end of lines if the name ends so.
func (f Files) unknown(name string, crlf bool) string {
	if crlf || strings.HasSuffix(name, `\r`) || strings.HasSuffix(name, `\r'`) {
		return windowsLines("A script of the app")
	}
	in := map[string]string{} // where to say that names are; "" of those on the path
	for _, dir := range f.Path {
		for _, n := range f.list(dir) {
			in[n] = ""
		}
	}
	for _, dir := range []string{"./", "bin/"} {
		if f.isFile(f.abs(dir + name)) {
			return fmt.Sprintf("%s is a file of the app, and not on its PATH: start it as %s%s", name, dir, name)
		}
		for _, own := range f.list(f.abs(dir)) {
			if _, known := in[own]; !known {
				in[own] = dir
			}
		}
	}
	near := nearest(name, slices.Sorted(maps.Keys(in)))
	near = in[near] + near
	mend := "add what brings it to the app's dependencies, or push with a buildpack or stack that has it"
	switch {
	case near != "":
		mend = fmt.Sprintf("did you mean %s? Correct the start command, and push again", near)
	case f.Image:
		mend = "correct the start command, or use an image that has it"
	}
	return fmt.Sprintf("There is no command %s in %s: %s", name, f.all(), mend)
}

// refused explains a file that cannot be executed.
func (f Files) refused(name string) string {
	file, err := f.Open(f.abs(name))
	if err != nil {
		return f.missing(name)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return ""
	case info.IsDir():
		return fmt.Sprintf("%s is a directory: name a program in it in the start command", name)
	case info.Mode()&0o111 == 0:
		return fmt.Sprintf("%s is not executable: run chmod +x %s, and push again (from Windows: start it as sh %s)", name, name, name)
	}
	n, err := read(file)
	if err != nil {
		return ""
	}
	return f.misfit(name, n)
}

// misfit explains why a file that may be executed does not run here.
func (f Files) misfit(name string, n needs) string {
	switch {
	case n.System != "":
		return fmt.Sprintf("%s is a program for %s: build it for Linux (GOOS=linux GOARCH=%s, or on the app's stack), and push again", name, n.System, runtime.GOARCH)
	case n.Processor != "" && n.Processor != runtime.GOARCH && (n.Processor != "386" || runtime.GOARCH != "amd64"):
		return fmt.Sprintf("%s is a program for %s processors, and this machine has %s: build it for linux/%s (GOARCH=%s, docker build --platform linux/%s), and push again",
			name, n.Processor, runtime.GOARCH, runtime.GOARCH, runtime.GOARCH, runtime.GOARCH)
	case strings.HasSuffix(n.Interpreter, "\r"):
		return windowsLines(name)
	case n.Interpreter == "" && !n.Script && n.Processor == "":
		return fmt.Sprintf("%s is neither a program for Linux nor a script: the first line of a script names its interpreter, as in #!/bin/sh", name)
	case n.Interpreter == "" || f.isFile(f.abs(n.Interpreter)):
		return ""
	case n.Processor != "":
		return fmt.Sprintf("%s needs the loader %s, which %s does not have%s: build it statically (CGO_ENABLED=0) or on %[3]s, and push again", name, n.Interpreter, f.system(), otherSystem(n.Interpreter))
	}
	return fmt.Sprintf("The first line of %s names the interpreter %s, which %s does not have%s: correct it, or %s",
		name, n.Interpreter, f.system(), f.near(n.Interpreter), f.other())
}

// other is what to do without an interpreter.
func (f Files) other() string {
	if f.Image {
		return "use an image that has it"
	}
	return "push with a stack or buildpack that has it"
}

func otherSystem(loader string) string {
	if strings.Contains(loader, "musl") {
		return " (it is built for Alpine)"
	}
	return ""
}

// missing explains a file that is not there.
func (f Files) missing(name string) string {
	switch {
	case f.Image && name == shell:
		return "The image has no shell, " + shell + ", which a start command of the app needs, as does the shell form of ENTRYPOINT and CMD: reset the command (cf push -c null), or use an image with a shell"
	case f.Image:
		return fmt.Sprintf("There is no file %s%s in the image: check its ENTRYPOINT and CMD, and the start command", name, f.near(name))
	}
	return fmt.Sprintf("There is no file %s%s: check the start command, and that .cfignore does not leave it out", name, f.near(name))
}

// shell is what runs the start command of an app that is an image.
const shell = "/bin/sh"

// near is a suffix with the file that a missing one was meant to be; "" if there is none.
func (f Files) near(name string) string {
	dir, base := path.Split(name)
	names := f.list(f.abs(cmp.Or(dir, ".")))
	slices.Sort(names)
	if near := nearest(base, names); near != "" {
		return fmt.Sprintf(" (did you mean %s%s?)", dir, near)
	}
	return ""
}

// nearest is not asked for short names: they are near to many.
func nearest(name string, names []string) string {
	if len(name) < 4 {
		return ""
	}
	return suggest.Nearest(name, names)
}

func windowsLines(name string) string {
	return fmt.Sprintf("%s has the line ends of Windows (CR LF): convert it with dos2unix, or say '* text eol=lf' in .gitattributes, and push again", name)
}

func (f Files) abs(name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(f.Dir, name)
}

// maxNames bounds the names of a directory.
const maxNames = 5000

func (f Files) list(dir string) []string {
	d, err := f.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, err := d.Readdirnames(maxNames)
	if err != nil && err != io.EOF {
		return nil
	}
	return names
}

func (f Files) isFile(name string) bool {
	file, err := f.Open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	info, err := file.Stat()
	return err == nil && info.Mode().Type() != fs.ModeDir
}
