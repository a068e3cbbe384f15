package debian

import (
	"cmp"
	"strings"
)

// compareVersions orders two Debian package versions as dpkg does
// (deb-version(7)): epoch, then upstream version, then revision. It returns a
// negative number, zero or a positive number, and is total: text that is no
// version still has a place.
func compareVersions(a, b string) int {
	ea, ua, ra := splitVersion(a)
	eb, ub, rb := splitVersion(b)
	return cmp.Or(compareDigits(ea, eb), compareFragment(ua, ub), compareFragment(ra, rb))
}

// splitVersion cuts "epoch:upstream-revision"; what is absent comes back empty,
// which compares as zero.
func splitVersion(v string) (epoch, upstream, revision string) {
	upstream = v
	if e, rest, ok := strings.Cut(v, ":"); ok && digits(e) == len(e) {
		epoch, upstream = e, rest
	}
	if i := strings.LastIndexByte(upstream, '-'); i >= 0 {
		upstream, revision = upstream[:i], upstream[i+1:]
	}
	return epoch, upstream, revision
}

// compareFragment walks both strings in turns of a non-digit run and a digit
// run; letters sort before other signs and a tilde before even the end.
func compareFragment(a, b string) int {
	for a != "" || b != "" {
		na, nb := nonDigits(a), nonDigits(b)
		if c := compareText(a[:na], b[:nb]); c != 0 {
			return c
		}
		a, b = a[na:], b[nb:]
		da, db := digits(a), digits(b)
		if c := compareDigits(a[:da], b[:db]); c != 0 {
			return c
		}
		a, b = a[da:], b[db:]
	}
	return 0
}

func compareText(a, b string) int {
	for i := 0; i < len(a) || i < len(b); i++ {
		if c := rank(a, i) - rank(b, i); c != 0 {
			return c
		}
	}
	return 0
}

// rank returns the place of s[i] in dpkg's order; the end of s has one too.
func rank(s string, i int) int {
	if i >= len(s) {
		return 0
	}
	switch c := s[i]; {
	case c == '~':
		return -1
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		return int(c)
	default:
		return int(c) + 256
	}
}

// compareDigits compares numbers of any length without converting them.
func compareDigits(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

func nonDigits(s string) int {
	n := 0
	for n < len(s) && (s[n] < '0' || s[n] > '9') {
		n++
	}
	return n
}
