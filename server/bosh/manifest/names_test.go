package manifest

import (
	"strings"
	"testing"
)

func TestSanitize(t *testing.T) {
	long := strings.Repeat("a", 70)
	for name, want := range map[string]string{
		"nats": "nats", "Cloud_Controller": "cloud-controller", "a.b/c": "abc", "-x-": "x", "": "", "é√ß": "",
		strings.Repeat("b", 63): strings.Repeat("b", 63),
		long:                    long[:31] + digest(long),
	} {
		if got := Sanitize(name); got != want {
			t.Errorf("Sanitize(%q): got %q; want %q", name, got, want)
		}
	}
}
