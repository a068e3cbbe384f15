package erb

import (
	"errors"
	"strings"
	"testing"
)

func FuzzScan(f *testing.F) {
	for _, g := range goldens {
		f.Add(g.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := newCache().render(&Template{Text: []byte(text), Context: example()})
		if !strings.Contains(text, "<%") && (err != nil || string(got) != text) {
			t.Errorf("%q became %q, %v", text, got, err)
		}
		var fault *fault
		if errors.As(err, &fault) && (fault.Line < 1 || fault.Line > 1+strings.Count(text, "\n")) {
			t.Errorf("%q: %v", text, fault)
		}
	})
}
