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
