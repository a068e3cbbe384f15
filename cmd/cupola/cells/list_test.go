package cells

import (
	"strings"
	"testing"
)

// TestWriteCells shows below the table what is wrong with a cell, and what to do.
func TestWriteCells(t *testing.T) {
	var out strings.Builder
	if err := writeCells(&out, []cellView{{ID: "cupola"}, {ID: "edge", Problem: "there is no tunnel", Mend: "add a route"}}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasSuffix(got, "\n\nedge: there is no tunnel\n  add a route\n") || strings.Contains(got, "cupola:") {
		t.Errorf("got\n%s", got)
	}
}
