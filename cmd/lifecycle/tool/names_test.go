package tool

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/contract"
)

func TestToolsAreThoseOfTheProgram(t *testing.T) {
	want := append(slices.Collect(maps.Keys(tools())), "sh")
	slices.Sort(want)
	if diff := cmp.Diff(want, contract.Tools()); diff != "" {
		t.Errorf("contract.Tools (-program +listed):\n%s", diff)
	}
}
