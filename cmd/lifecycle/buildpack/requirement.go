package buildpack

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cupola/runtime/contract"
	"cupola/runtime/pattern"
)

// requirement is the version that an app asks for.
type requirement struct {
	from       string // the file that asks
	constraint string // as satisfies reads it; "" accepts every version
	// digits is how many numbers of a version that is given in full must be the same: a stack has one patch release of each, with the
	// fixes of its distribution.
	digits int
}

// installed is a program of the stack.
type installed struct{ path, version string }

var (
	fullVersion = pattern.Lazy(`^v?\d+\.\d+\.\d+$`)
	anyVersion  = pattern.Lazy(`\d+(\.\d+)+`)
)

// accepts reports whether a version meets the requirement, and whether only nearly: by another patch release.
func (r requirement) accepts(version string) (ok, nearly bool) {
	if r.constraint == "" || satisfies(version, r.constraint) {
		return true, false
	}
	if r.digits == 0 || !fullVersion().MatchString(r.constraint) {
		return false, false
	}
	have, want := numbers(version), numbers(trimV(r.constraint))
	ok = len(have) >= r.digits && slices.Equal(have[:r.digits], want[:r.digits])
	return ok, ok
}

func trimV(version string) string {
	if version != "" && version[0] == 'v' {
		return version[1:]
	}
	return version
}

// elsewhere ends the error of a version that this stack does not have with a stack that has it; "" if none is known.
func elsewhere(toolchain string, accepts func(version string) bool) string {
	t, _ := contract.ToolchainOf(toolchain)
	for _, r := range t.Releases {
		if r.Suite != os.Getenv(contract.EnvStack) && accepts(r.Version) {
			return fmt.Sprintf(". Push with -s %[1]s, which has %[2]s (if cf stacks does not list it: sudo cupola stack build %[1]s --with %[3]s)", r.Suite, r.Version, t.Name)
		}
	}
	return ""
}

// choose returns the first program that meets the requirement. what is the language's name.
func (s *stage) choose(what string, w requirement, all []installed) (installed, error) {
	var versions []string
	for _, p := range all {
		ok, nearly := w.accepts(p.version)
		if nearly {
			s.warn("%s asks for %s %s; %s has %s, which is used.", w.from, what, w.constraint, stackName(), p.version)
		}
		if ok {
			return p, nil
		}
		versions = append(versions, p.version)
	}
	accepts := func(version string) bool { ok, _ := w.accepts(version); return ok }
	return installed{}, fmt.Errorf("%s asks for %s %s, which %s does not have. Available versions: %v%s",
		w.from, what, w.constraint, stackName(), versions, elsewhere(strings.ToLower(what), accepts))
}

// findAll returns the program first, which is the stack's own choice, and others of these patterns, the newest first, with what version
// says of each.
func (s *stage) findAll(first string, argument string, patterns ...string) []installed {
	var others []installed
	seen := map[string]bool{}
	add := func(path string) {
		real, err := filepath.EvalSymlinks(path)
		if err != nil || seen[real] || !isProgram(path) {
			return
		}
		seen[real] = true
		// Elsewhere than in the app: what a file there asks for decides what go and pyenv say of themselves.
		if out, err := s.command(call{argv: []string{path, argument}, dir: "/"}).CombinedOutput(); err == nil {
			if v := anyVersion().FindString(string(out)); v != "" {
				others = append(others, installed{path, v})
			}
		}
	}
	add(first)
	own := len(others)
	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern)
		for _, path := range found {
			add(path)
		}
	}
	slices.SortStableFunc(others[own:], func(a, b installed) int { return slices.Compare(numbers(b.version), numbers(a.version)) })
	return others
}
