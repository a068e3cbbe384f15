package command

import (
	"bytes"
	"testing"
)

// TestProgressLine wraps the lines of a log right of the steps, and nothing where
// there is no terminal.
func TestProgressLine(t *testing.T) {
	const text = "Cell cupola creating the container é of an instance"
	for _, c := range []struct {
		width int
		want  string
	}{
		{0, "             Cell cupola creating the container é of an instance\n"},
		{20, "             Cell cupola creating the container é of an instance\n"},
		{50, "             Cell cupola creating the container é \n             of an instance\n"},
	} {
		var out bytes.Buffer
		p := &Report{out: &out, width: c.width}
		p.Line(text)
		if out.String() != c.want {
			t.Errorf("%d columns: got %q; want %q", c.width, out.String(), c.want)
		}
	}
}
