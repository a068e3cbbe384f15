package databroker

import (
	"fmt"
	"slices"
	"strings"
)

// software is where an engine's programs come from.
type software struct {
	packages map[string][]string // by suite; a suite that is missing lacks the engine
	without  []string            // packages that those depend on and never use: names, or patterns of path.Match
	program  string              // a file that every stack with the engine has: a pattern of path.Match
}

// Suites are the releases of distributions that the services' stack is built from.
func Suites() []string { return []string{"debian12", "debian13", "jammy", "noble"} }

// everySuite are packages that have the same names in all suites.
func everySuite(packages ...string) map[string][]string {
	all := map[string][]string{}
	for _, suite := range Suites() {
		all[suite] = packages
	}
	return all
}

// Packages are the packages of a suite that services run on, and those that are left out
// though they depend on them. No names mean all services that the suite has.
func Packages(suite string, names []string) (packages, without []string, err error) {
	if !slices.Contains(Suites(), suite) {
		return nil, nil, fmt.Errorf("invalid --suite %q: choose one of %s", suite, strings.Join(Suites(), ", "))
	}
	for _, name := range names {
		if s, ok := serviceOf(name); !ok || s.engine == nil {
			return nil, nil, fmt.Errorf("invalid --services %q: choose of %s", name, strings.Join(packaged(suite), ", "))
		}
	}
	if len(names) == 0 {
		names = packaged(suite)
	}
	for _, name := range names {
		s, _ := serviceOf(name)
		some := s.software.packages[suite]
		if len(some) == 0 {
			return nil, nil, fmt.Errorf("%s has no packages for %s: choose another --suite", name, suite)
		}
		packages, without = append(packages, some...), append(without, s.software.without...)
	}
	return packages, without, nil
}

// packaged are the services that a suite has packages of.
func packaged(suite string) (names []string) {
	for _, s := range services() {
		if len(s.software.packages[suite]) > 0 {
			names = append(names, s.name)
		}
	}
	return names
}

// Prepared are the services whose programs a stack has; has reports whether a file that
// matches a pattern is in the stack.
func Prepared(has func(pattern string) bool) (names []string) {
	for _, s := range services() {
		if s.engine != nil && has(s.software.program) {
			names = append(names, s.name)
		}
	}
	return names
}

// Missing are those of some services that need programs which a stack does not have.
func Missing(names []string, has func(pattern string) bool) (missing []string) {
	for _, name := range names {
		if s, ok := serviceOf(name); ok && s.engine != nil && !has(s.software.program) {
			missing = append(missing, name)
		}
	}
	return missing
}

// PrepareCommand is the command that adds services to the stack.
func PrepareCommand(names ...string) string {
	return "sudo cupola broker prepare --services " + strings.Join(names, ",")
}

// prepared reports whether instances of a service can run.
func (b *broker) prepared(s service) bool {
	_, needsStack := s.engine.(builtIn)
	return !needsStack || b.HasFile(s.software.program)
}
