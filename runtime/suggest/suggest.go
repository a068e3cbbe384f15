// Package suggest finds the known name that a misspelt one was meant to be. It is
// pure.
package suggest

import (
	"fmt"
	"strings"
)

// Hint returns a suffix for an error's text: " (did you mean …?)" with the
// closest candidate, or "".
func Hint(name string, candidates []string) string {
	if n := Name(name, candidates); n != "" {
		return fmt.Sprintf(" (did you mean %q?)", n)
	}
	return ""
}

// Name returns the candidate within a few typing errors of name, or ""; of the first 200 candidates.
func Name(name string, candidates []string) string {
	const maxCandidates = 200
	return Nearest(name, candidates[:min(len(candidates), maxCandidates)])
}

// Nearest is Name for any number of candidates.
func Nearest(name string, candidates []string) (best string) {
	const maxLen = 64
	name = strings.ToLower(name[:min(len(name), maxLen)])
	if word, _, ok := strings.Cut(name, " "); ok {
		name = word
	}
	least := 1 + min(3, len(name)/3)
	for _, c := range candidates {
		if short := len(name) - len(c); short > least || -short > least {
			continue
		}
		if d := distance(name, strings.ToLower(c[:min(len(c), maxLen)])); d < least {
			best, least = c, d
		}
	}
	return best
}

// distance returns the Damerau-Levenshtein distance: how many characters to
// change, add, drop or swap with a neighbour to turn a into b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
