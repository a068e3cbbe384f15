package logcache

import (
	"strings"
	"testing"
)

func TestCheckPattern(t *testing.T) {
	for pattern, want := range map[string]error{
		"": nil, "cpu|memory": nil, "(a{1000})": nil, "[": nil,
		strings.Repeat("0c6d3f2e-7a51-4d0b-9a33-52c1c4a6f7d1|", 1500): nil,
		strings.Repeat("a{1000}", 200):                                ErrPattern,
		"(" + strings.Repeat("b", 2000) + "){1000}":                   ErrPattern,
		"((" + strings.Repeat("b", 2000) + "){10}){10,}":              ErrPattern,
	} {
		if got := CheckPattern(pattern); got != want {
			t.Errorf("%.40s: got %v; want %v", pattern, got, want)
		}
	}
}
