// Package cfignore says which files of an app a push leaves out.
package cfignore

import (
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// File is the name of the file of an app whose lines say what a push leaves out.
const File = ".cfignore"

// always are the files that no push uploads, as with the cf CLI.
var always = []string{File, "_darcs", ".DS_Store", ".git", ".gitignore", ".hg", "manifest.yml", "manifest.yaml", ".svn"}

// Matcher matches what a push leaves out.
type Matcher struct{ patterns gitignore.Matcher }

// New returns the Matcher of an app with the text of its .cfignore, "" for none.
func New(text string) Matcher {
	var patterns []gitignore.Pattern
	for _, name := range always {
		patterns = append(patterns, gitignore.ParsePattern(name, nil))
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			patterns = append(patterns, gitignore.ParsePattern(line, nil))
		}
	}
	return Matcher{gitignore.NewMatcher(patterns)}
}

// Skips reports whether a push leaves out a file, or a directory with all that is
// in it. The path is relative to the app's directory, with slashes.
func (m Matcher) Skips(path string, isDir bool) bool {
	return m.patterns.Match(strings.Split(path, "/"), isDir)
}
