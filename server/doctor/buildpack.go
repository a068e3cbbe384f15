package doctor

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"cupola/runtime/contract"
)

// buildpacks says which toolchains of buildpacks each stack has and lacks, and how to get those. None is needed: an app's staging
// says the same of the one that it needs.
func (m *machine) buildpacks(context.Context) Result {
	text := []string{toolchainText("host", m.root)}
	built, _ := filepath.Glob(filepath.Join(m.path(m.DataDir), "rootfs", "stacks", "*", "fs"))
	for _, dir := range built {
		text = append(text, toolchainText(filepath.Base(filepath.Dir(dir)), dir))
	}
	return fine(strings.Join(text, "; "))
}

// toolchainText names the toolchains that a stack has, and for each that it lacks how to get it.
func toolchainText(stack, root string) string {
	var have, with, otherwise []string
	for _, t := range contract.Toolchains() {
		switch {
		case hasToolchain(root, t):
			have = append(have, t.Name)
		case t.Otherwise != "":
			otherwise = append(otherwise, fmt.Sprintf("%s: %s", t.Name, t.Otherwise))
		default:
			with = append(with, t.Name)
		}
	}
	text := stack + " has " + strings.Join(have, ", ")
	if len(have) == 0 {
		text = stack + " has no toolchain"
	}
	if len(with) > 0 {
		text += fmt.Sprintf(", and lacks %s (sudo cupola stack build debian12 --with %s)", strings.Join(with, ", "), strings.Join(with, ","))
	}
	if len(otherwise) > 0 {
		text += ", and " + strings.Join(otherwise, ", ")
	}
	return text
}

// hasToolchain reports whether one of the programs is in the tree. Links count as what they are, since they lead out of a stack's tree.
func hasToolchain(root string, t contract.Toolchain) bool {
	for _, program := range t.Programs {
		patterns := []string{program}
		if path.Base(program) == program {
			patterns = nil
			for _, dir := range []string{"usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin"} {
				patterns = append(patterns, path.Join(dir, program))
			}
		}
		for _, pattern := range patterns {
			found, _ := filepath.Glob(filepath.Join(root, pattern))
			for _, f := range found {
				if _, err := os.Lstat(f); err == nil {
					return true
				}
			}
		}
	}
	return false
}
