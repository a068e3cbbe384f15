//go:build linux

package lifecycle

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lifecycle/tool"
)

func TestToolsAreThoseOfTheProgram(t *testing.T) {
	want := append(tool.Names(), "sh")
	slices.Sort(want)
	if diff := cmp.Diff(want, Tools()); diff != "" {
		t.Errorf("Tools (-program +listed):\n%s", diff)
	}
}
