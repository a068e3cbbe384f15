package kube

import (
	"math"
	"strconv"
	"strings"
)

// suffixes are those of Kubernetes' quantities, the longer ones first.
var suffixes = []struct {
	text string
	by   float64
}{
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40}, {"Pi", 1 << 50}, {"Ei", 1 << 60},
	{"m", 1e-3}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}, {"E", 1e18},
}

// quantity is amount, rounded down.
func quantity(s string) int64 {
	n := amount(s)
	if n >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(n)
}

// amount reads one of Kubernetes' quantities; 0 for what is none.
func amount(s string) float64 {
	by := 1.0
	for _, suffix := range suffixes {
		if rest, ok := strings.CutSuffix(s, suffix.text); ok {
			s, by = rest, suffix.by
			break
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	if n *= by; err != nil || math.IsNaN(n) || n < 0 {
		return 0
	}
	return n
}
