package main

import (
	"os"
	"regexp"
	"sort"
	"strings"
)

// secret matches the names of variables whose values are nobody's business.
var secret = regexp.MustCompile(`(?i)VCAP_SERVICES|DATABASE_URL|PASSWORD|SECRET|TOKEN|KEY|CREDENTIAL`)

// environment lists the variables by name, one a line, with secrets hidden.
func environment() string {
	lines := os.Environ()
	for i, line := range lines {
		if name, _, _ := strings.Cut(line, "="); secret.MatchString(name) {
			lines[i] = name + "=(hidden)"
		}
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n") + "\n"
}
