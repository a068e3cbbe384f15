package redact

import (
	"slices"
	"strings"
)

// shortest is the length of credentials that Text looks for: shorter ones are in many words.
const shortest = 4

// Text replaces credentials in a text by Redacted.
func Text(text string, credentials []string) string {
	var pairs []string
	for _, c := range slices.SortedFunc(slices.Values(credentials), func(a, b string) int { return len(b) - len(a) }) { // one that contains another comes first
		if len(c) >= shortest {
			pairs = append(pairs, c, Redacted)
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
