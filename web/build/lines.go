package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// longest is how many characters a line of the sources may have.
const longest = 140

// checkLines returns an error that names the lines of the files in dirs that have
// more characters than longest.
func checkLines(dirs ...string) error {
	var wrong []string
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			for n, line := range strings.Split(string(text), "\n") {
				if chars := utf8.RuneCountInString(line); chars > longest {
					wrong = append(wrong, fmt.Sprintf("%s:%d has %d characters", path, n+1, chars))
				}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("break lines that are longer than %d characters:\n%s", longest, strings.Join(wrong, "\n"))
	}
	return nil
}
