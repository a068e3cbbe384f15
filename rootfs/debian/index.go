package debian

import (
	"fmt"
	"strconv"
	"strings"
)

// An available package is one stanza of a Packages index.
type available struct {
	name, version, arch string
	depends             string // Pre-Depends and Depends
	conflicts           string // Conflicts and Breaks
	provides            string
	filename            string // below the archive's base URL
	digest              digest
	essential           bool
	archive             string // the pocket that offers it
}

// parsePackages reads a Packages index of one pocket. Packages of other
// architectures than arch and "all" are left out.
func parsePackages(text, arch, archive string) ([]*available, error) {
	all := make([]*available, 0, strings.Count(text, "\n\n")+1)
	for p, err := range paragraphs(text) {
		if err != nil {
			return nil, err
		}
		a, err := parseAvailable(p)
		if err != nil {
			return nil, err
		}
		if a.arch == arch || a.arch == "all" {
			a.archive = archive
			all = append(all, a)
		}
	}
	return all, nil
}

func parseAvailable(p paragraph) (*available, error) {
	a := &available{}
	var size, sum string
	for _, f := range p {
		switch f.name {
		case "Package":
			a.name = f.value
		case "Version":
			a.version = f.value
		case "Architecture":
			a.arch = f.value
		case "Depends", "Pre-Depends":
			a.depends = joinList(a.depends, f.value)
		case "Conflicts", "Breaks":
			a.conflicts = joinList(a.conflicts, f.value)
		case "Provides":
			a.provides = f.value
		case "Filename":
			a.filename = f.value
		case "Essential":
			a.essential = f.value == "yes"
		case "Size":
			size = f.value
		case "SHA256":
			sum = f.value
		}
	}
	n, err := strconv.ParseInt(size, 10, 64)
	a.digest = digest{sum, n}
	if err != nil || n <= 0 || !isSHA256(sum) || !isPackageName(a.name) || a.version == "" || !isPoolPath(a.filename) {
		return nil, fmt.Errorf("no usable name, version, file name, size and hash of package %.60q", a.name)
	}
	return a, nil
}

func joinList(a, b string) string {
	if a == "" {
		return b
	}
	return a + ", " + b
}

// isPackageName follows Debian policy 5.6.1.
func isPackageName(s string) bool {
	return len(s) > 1 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789+-.") == "" && s[0] != '.' && s[0] != '-' && s[0] != '+'
}

// isPoolPath accepts a relative path of plain parts.
func isPoolPath(s string) bool {
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "\\?#% \t\n") {
			return false
		}
	}
	return true
}
