package doctor

import (
	"strings"
	"testing"
)

func TestTemplates(t *testing.T) {
	for _, test := range []struct{ version, stack, want string }{
		{"3.1.2", "host", "ruby 3.1.2 renders others in a sandbox"},
		{"3.1.2", "minifs", "ruby 3.1.2 is installed, but"},
		{"", "host", "install the package ruby"},
	} {
		if got := (&machine{host: host{root: t.TempDir()}}).judgeTemplates(test.version, test.stack); got.Level != OK || !strings.Contains(got.Detail, test.want) {
			t.Errorf("got %v; want %s", got, test.want)
		}
	}
}
