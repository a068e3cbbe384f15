package buildpack

import (
	"archive/zip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// javaVM is a JVM of the stack.
type javaVM struct {
	home    string
	version string // as in its file release: "17.0.15", "1.8.0_422"
}

// jvmPatterns are where systems have JVMs.
var jvmPatterns = []string{"/usr/lib/jvm/*", "/opt/java/*", "/opt/jdk*", "/usr/local/openjdk*"}

// findJVMs lists the JVMs of these directories, the newest first.
func findJVMs(patterns ...string) []javaVM {
	var all []javaVM
	var seen []string
	for _, pattern := range patterns {
		homes, _ := filepath.Glob(pattern)
		for _, home := range homes {
			real, err := filepath.EvalSymlinks(home)
			if err != nil || slices.Contains(seen, real) || !isProgram(filepath.Join(real, "bin", "java")) {
				continue
			}
			seen = append(seen, real)
			if v := releaseVersion(real); v != "" {
				all = append(all, javaVM{home: real, version: v})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b javaVM) int { return slices.Compare(b.number(), a.number()) })
	return all
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// releaseVersion reads JAVA_VERSION of a JVM's file release.
func releaseVersion(home string) string {
	text, err := os.ReadFile(filepath.Join(home, "release"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "JAVA_VERSION="); ok {
			return strings.Trim(v, `"`)
		}
	}
	return ""
}

// number is the version as numbers, the feature release first also for Java 8: 1.8.0_422 is 8, 0, 422.
func (j javaVM) number() []int {
	var out []int
	for _, part := range versionParts(j.version) {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		out = append(out, n)
	}
	return out
}

func (j javaVM) major() int {
	if n := j.number(); len(n) > 0 {
		return n[0]
	}
	return 0
}

// versionParts splits a version or a pattern of versions. The build, `+9` at the end, is not part of a JVM's version.
func versionParts(version string) []string {
	version = strings.TrimPrefix(strings.TrimPrefix(version, "jdk-"), "v")
	return strings.FieldsFunc(strings.TrimPrefix(version, "1.8."), func(r rune) bool { return r == '.' || r == '_' })
}

// matches reports whether a JVM is of a version like 17, 17.+, 17.*, 17.0.x, 17.0.15 or 1.8.0_+.
func (j javaVM) matches(pattern string) bool {
	have, want := versionParts(j.version), versionParts(pattern)
	if strings.HasPrefix(j.version, "1.8.") {
		have = append([]string{"8"}, have...)
	}
	if strings.HasPrefix(pattern, "1.8.") {
		want = append([]string{"8"}, want...)
	}
	for i, part := range want {
		part, _, build := strings.Cut(part, "+")
		if part == "*" || part == "x" || part == "" && build {
			return true
		}
		if i >= len(have) || have[i] != part {
			return false
		}
	}
	return len(want) > 0
}

// chooseJVM returns the stack's newest JVM, or the newest of the version that the user asks for.
func chooseJVM(c javaConfig, all []javaVM) (javaVM, error) {
	if len(all) == 0 {
		return javaVM{}, lackOf("java")
	}
	wanted := c.jre.JRE.Version
	if wanted == "" {
		return all[0], nil
	}
	var versions []string
	for _, j := range all {
		if j.matches(wanted) {
			return j, nil
		}
		versions = append(versions, j.version)
	}
	accepts := func(version string) bool { return javaVM{version: version}.matches(wanted) }
	return javaVM{}, fmt.Errorf("no version of openjdk matching '%s' found in %s: %s asks for it. Available versions: %v%s", wanted, stackName(), c.versionFrom, versions, elsewhere("java", accepts))
}

// Of the classes of an app and of its JVM, about a third is loaded (java-buildpack: countClasses, jres/jre.go).
const (
	moduleClasses = 42215 // of a JVM since Java 9
	loadedPercent = 35
)

// countClasses estimates how many classes the running app loads.
func countClasses(app string, j javaVM) int {
	n := 0
	_ = filepath.WalkDir(app, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // what cannot be read has no classes
		}
		switch filepath.Ext(path) {
		case ".class", ".groovy":
			n++
		case ".jar", ".war":
			n += archivedClasses(path)
		}
		return nil
	})
	if j.major() >= 9 {
		n += moduleClasses
	}
	return n * loadedPercent / 100
}

func archivedClasses(path string) int {
	r, err := zip.OpenReader(path)
	if err != nil {
		return 0
	}
	defer r.Close()
	n := 0
	for _, f := range r.File {
		if strings.HasSuffix(f.Name, ".class") || strings.HasSuffix(f.Name, ".groovy") {
			n++
		}
	}
	return n
}
