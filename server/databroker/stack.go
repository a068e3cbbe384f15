package databroker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cupola/examples"
)

// software is where an engine's programs come from.
type software struct {
	packages map[string][]string // by suite; a suite that is missing lacks the engine
	without  []string            // packages that those depend on and never use: names, or patterns of path.Match
	program  string              // a file that every stack with the engine has: a pattern of path.Match; "" of a service that needs no stack
	stack    string              // that is for this service alone; "": Stack
	image    string              // that the stack is made of, instead of packages
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
		if s, ok := serviceOf(name); !ok || s.software.packages == nil {
			return nil, nil, fmt.Errorf("invalid --services %q: choose of %s", name, strings.Join(append(packaged(suite), examples.ServiceFiles...), ", "))
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

// HasFile reports whether a stack is here and has a file that matches a pattern of path.Match.
type HasFile func(stack, pattern string) bool

// has reports whether a service has its programs, or needs none.
func (has HasFile) has(s service) bool {
	return s.software.program == "" || has(s.software.stackName(), s.software.program)
}

// stackName is the stack that has the programs.
func (s software) stackName() string { return cmp.Or(s.stack, Stack) }

// Prepared are the services that need programs and whose stack has them.
func Prepared(has HasFile) (names []string) {
	for _, s := range services() {
		if s.software.program != "" && has.has(s) {
			names = append(names, s.name)
		}
	}
	return names
}

// Missing are those of some services that need programs which their stack does not have.
func Missing(names []string, has HasFile) (missing []string) {
	for _, name := range names {
		if s, ok := serviceOf(name); ok && !has.has(s) {
			missing = append(missing, name)
		}
	}
	return missing
}

// PrepareCommand is the command that prepares services.
func PrepareCommand(names ...string) string {
	return "sudo cupola broker prepare --services " + strings.Join(names, ",")
}
