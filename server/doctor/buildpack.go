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
	silent, _ := silentSoftware() // an error hides only what does not answer
	text := []string{toolchainText("host", m.root, silent)}
	built, _ := filepath.Glob(filepath.Join(m.path(m.DataDir), "rootfs", "stacks", "[^.]*", "fs"))
	for _, dir := range built {
		name, _, _ := strings.Cut(filepath.Base(filepath.Dir(dir)), "~") // the number of one that replaced another
		text = append(text, toolchainText(name, dir, nil))
	}
	ways := "to get one: sudo cupola stack build debian12 --with NAME"
	for _, t := range contract.Toolchains() {
		if t.Otherwise != "" {
			ways += "; " + t.Name + ": " + t.Otherwise
		}
	}
	return fine(strings.Join(append(text, ways), "; "))
}

// toolchainText names the toolchains that a stack has, and those that it lacks. It does not look below the mount points in
// silent, which do not answer.
func toolchainText(stack, root string, silent []string) string {
	have, lack := []string{}, []string{}
	for _, t := range contract.Toolchains() {
		if hasToolchain(root, t, silent) {
			have = append(have, t.Name)
		} else {
			lack = append(lack, t.Name)
		}
	}
	switch {
	case len(have) == 0:
		return stack + " has no toolchain"
	case len(lack) == 0:
		return stack + " has all toolchains"
	}
	return fmt.Sprintf("%s has %s, and lacks %s", stack, strings.Join(have, ", "), strings.Join(lack, ", "))
}

// hasToolchain reports whether one of the programs is in the tree. Links count as what they are, since they lead out of a stack's tree.
func hasToolchain(root string, t contract.Toolchain, silent []string) bool {
	for _, program := range t.Programs {
		patterns := []string{program}
		if path.Base(program) == program {
			patterns = nil
			for _, dir := range []string{"usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin"} {
				patterns = append(patterns, path.Join(dir, program))
			}
		}
		for _, pattern := range patterns {
			pattern = filepath.Join(root, pattern)
			if isBelow(pattern, silent) {
				continue
			}
			found, _ := filepath.Glob(pattern)
			for _, f := range found {
				if _, err := os.Lstat(f); err == nil {
					return true
				}
			}
		}
	}
	return false
}
