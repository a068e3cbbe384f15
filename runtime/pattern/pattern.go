// Package pattern has regular expressions that are compiled when they are first used.
// A program that ends after one command compiles few of the many that it knows, and
// one with a bounded repetition ({1,253}) takes milliseconds.
package pattern

import (
	"regexp"
	"sync"
)

// Lazy returns what compiles the expression at its first call. Like
// regexp.MustCompile it panics, at each call, if that is not possible.
func Lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
