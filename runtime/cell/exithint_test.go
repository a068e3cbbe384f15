package cell

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The last lines are kept, each cut, in their order.
func TestLastLines(t *testing.T) {
	t.Parallel()
	var l lastLines
	if got := l.all(); len(got) != 0 {
		t.Errorf("got %q of none", got)
	}
	var want []string
	for n := range 3*keptLines + 1 {
		text := strings.Repeat(strconv.Itoa(n), n)
		l.add([]byte(text + strings.Repeat("x", n%2*keptLength)))
		want = append(want, (text + strings.Repeat("x", n%2*keptLength))[:min(len(text)+n%2*keptLength, keptLength)])
	}
	if got := l.all(); !slices.Equal(got, want[len(want)-keptLines:]) {
		t.Errorf("got %q; want %q", got, want[len(want)-keptLines:])
	}
}
