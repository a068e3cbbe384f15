package buildpack

import (
	"slices"
	"strconv"
	"strings"
)

// satisfies reports whether a version meets a constraint in the forms that package managers share: 18, 18.x, 1.2.*, 3.1.+, ^8.1, ~3.2,
// ~> 3.2, >=16 <21, >= 3.0, != 3.1, 16 - 18, and alternatives with ||. One that cannot be read is met by no version.
func satisfies(version, constraint string) bool {
	have := numbers(version)
	if len(have) == 0 {
		return false
	}
	for alternative := range strings.SplitSeq(strings.ReplaceAll(constraint, "||", "|"), "|") {
		if meets(have, alternative) {
			return true
		}
	}
	return false
}

// meets reports whether a version meets all parts of an alternative.
func meets(have []int, alternative string) bool {
	if from, to, ok := strings.Cut(alternative, " - "); ok {
		return meets(have, ">="+from) && meets(have, "<="+to)
	}
	parts := strings.FieldsFunc(spaced.Replace(alternative), func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
	for _, part := range parts {
		if !meetsPart(have, part) {
			return false
		}
	}
	return true // an empty one is for all versions
}

// spaced joins operators with their versions.
var spaced = strings.NewReplacer("> ", ">", ">= ", ">=", "< ", "<", "<= ", "<=", "~> ", "~>", "~ ", "~", "^ ", "^", "== ", "==", "= ", "=", "!= ", "!=")

// operators are the longest first.
var operators = []string{"~>", "~=", ">=", "<=", "==", "!=", ">", "<", "=", "^", "~"}

func meetsPart(have []int, part string) bool {
	operator := ""
	for _, o := range operators {
		if rest, ok := strings.CutPrefix(part, o); ok {
			operator, part = o, rest
			break
		}
	}
	part = strings.TrimPrefix(part, "v")
	if part == "*" || part == "x" || part == "X" || part == "latest" {
		return operator != "<" && operator != ">" && operator != "!="
	}
	want := numbers(part)
	if len(want) == 0 {
		return false
	}
	order := slices.Compare(cut(have, want), want)
	switch operator {
	case ">=":
		return order >= 0
	case ">":
		return order > 0
	case "<=":
		return order <= 0
	case "<":
		return order < 0
	case "!=":
		return order != 0
	case "^":
		return slices.Compare(have, want) >= 0 && slices.Equal(cut(have, want[:significant(want)]), want[:significant(want)])
	case "~":
		return slices.Compare(have, want) >= 0 && slices.Equal(cut(have, want[:min(2, len(want))]), want[:min(2, len(want))])
	case "~>", "~=":
		same := max(1, len(want)-1)
		return slices.Compare(have, want) >= 0 && slices.Equal(cut(have, want[:same]), want[:same])
	}
	return order == 0
}

// significant is how many numbers ^ keeps: up to the first that is not zero.
func significant(want []int) int {
	for i, n := range want {
		if n != 0 {
			return i + 1
		}
	}
	return len(want)
}

// cut shortens a version to the length of another, or fills it with zeros.
func cut(version, to []int) []int {
	out := make([]int, len(to))
	copy(out, version)
	return out
}

// numbers reads the numbers at the start of a version: 18.x is 18, 3.1.2p20 is 3, 1, 2.
func numbers(version string) []int {
	var out []int
	for part := range strings.SplitSeq(version, ".") {
		digits := len(part) - len(strings.TrimLeft(part, "0123456789"))
		n, err := strconv.Atoi(part[:digits])
		if err != nil {
			break
		}
		if out = append(out, n); digits < len(part) {
			break
		}
	}
	return out
}
