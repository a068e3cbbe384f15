package cell

import (
	"errors"
	"testing"

	"cupola/runtime/container"
)

// TestMemoryIsTheReason has a process that the kernel ended for its memory, just when it was asked to end, say so.
func TestMemoryIsTheReason(t *testing.T) {
	exit := func(code int, oom bool) container.Exit { return container.Exit{Known: true, Code: code, OOM: oom} }
	for name, c := range map[string]struct {
		end  runEnd
		want string // "" is that it was cancelled
	}{
		"killed by the kernel":           {runEnd{exit: exit(137, true), cancelled: true}, "WEB: Exited with status 137 (out of memory)"},
		"killed by somebody":             {runEnd{exit: exit(137, false), cancelled: true}, ""},
		"a child was, and it ends":       {runEnd{exit: exit(143, true), cancelled: true}, ""},
		"ended well":                     {runEnd{exit: exit(0, false), cancelled: true}, ""},
		"killed after its time of grace": {runEnd{exit: exit(137, true), cancelled: true, killed: true}, errGrace.Error()},
	} {
		err := c.end.err("WEB")
		if c.want == "" && !errors.Is(err, errCancelled) || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%s: got %v; want %q", name, err, c.want)
		}
	}
}
