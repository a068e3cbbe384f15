package root

import (
	"strings"
	"testing"
)

func TestIDs(t *testing.T) {
	t.Parallel()
	for id, ok := range map[string]bool{"a": true, "A-1_b.c": true, "": false, ".": false, "..": false, ".hidden": false, "a/b": false, "a b": false, strings.Repeat("x", 129): false} {
		if (checkID(id) == nil) != ok {
			t.Errorf("id %q: want ok %t", id, ok)
		}
	}
}
