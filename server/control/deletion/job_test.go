package deletion

import (
	"slices"
	"strings"
	"testing"

	"cupola/store/cf"
)

// However many things a broker fails to delete, a job tells of some.
func TestManyReasonsAreCut(t *testing.T) {
	d := &Progress{failed: slices.Repeat([]string{"the broker is out"}, 5000)}
	got := d.Fault(nil, &cf.Job{Operation: App}).Detail
	if strings.Count(got, "the broker is out") != maxReasons || !strings.HasSuffix(got, "\nand 4980 more") {
		t.Errorf("got %d bytes: %.200s", len(got), got)
	}
}
