package databroker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// majors are the versions of PostgreSQL that suites have.
func majors() map[string]string {
	return map[string]string{"debian12": "15", "debian13": "17", "jammy": "14", "noble": "16"}
}

// Packages are those of a suite that databases run on.
func Packages(suite string) ([]string, error) {
	major, ok := majors()[suite]
	if !ok {
		return nil, fmt.Errorf("the databases of %q are not known: choose one of %s", suite, strings.Join(slices.Sorted(maps.Keys(majors())), ", "))
	}
	return []string{"postgresql-" + major, "postgresql-client-" + major, "redis-server"}, nil
}

// Without are packages that the databases depend on and never use: what compiles
// queries, which is off, and Debian's own scripts around them.
func Without() []string {
	return []string{"libllvm*", "libz3-*", "postgresql-common*", "postgresql-client-common", "perl", "libperl*", "perl-modules-*", "locales", "libc-l10n", "ssl-cert", "ucf"}
}
