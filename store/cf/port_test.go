package cf

import (
	"slices"
	"testing"
)

func TestPortRanges(t *testing.T) {
	for text, want := range map[string][]int{
		"1024":                 {1024},
		"1024-1026":            {1024, 1025, 1026},
		"2000, 1024-1025,2000": {1024, 1025, 2000},
	} {
		r, err := ParsePortRanges(text)
		if err != nil || !slices.Equal(r.All(), want) {
			t.Errorf("%q: got %v, %v; want %v", text, r.All(), err, want)
		}
		if !r.Contain(want[0]) || r.Contain(3) {
			t.Errorf("%q: it is not known which ports it has", text)
		}
	}
	for _, text := range []string{"", "x", "0", "5-4", "1-65536", "1-2-3", "-"} {
		if r, err := ParsePortRanges(text); err == nil {
			t.Errorf("%q: got %v; want an error", text, r)
		}
	}
}

func FuzzPortRanges(f *testing.F) {
	f.Add("1024-1033,2000")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParsePortRanges(text)
		if err != nil {
			return
		}
		again, err := ParsePortRanges(r.String())
		if err != nil || !slices.Equal(again, r) {
			t.Errorf("%q: got %v, %v from its own text", text, again, err)
		}
	})
}
