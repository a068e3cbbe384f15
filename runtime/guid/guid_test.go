package guid

import (
	"regexp"
	"testing"
)

func TestRandom(t *testing.T) {
	v4 := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 1000 {
		for _, id := range []string{New(), Fast()} {
			if !v4.MatchString(id) || seen[id] {
				t.Fatalf("got %q; want a new GUID of version 4", id)
			}
			seen[id] = true
		}
	}
}

// TestInstance: an instance's GUID is one of version 4 without its end, as Diego's rep
// makes them.
func TestInstance(t *testing.T) {
	v4 := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{4}$`)
	if a, b := Instance(), Instance(); !v4.MatchString(a) || len(a) != 28 || a == b {
		t.Errorf("got %q and %q; want two of 28 characters", a, b)
	}
}

// TestNamed compares with the RFC's example (A.4) and with one of other
// programs.
func TestNamed(t *testing.T) {
	const dns = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	for _, c := range []struct{ space, name, want string }{
		{dns, "www.example.com", "2ed6657d-e927-568b-95e1-2665a8aea6a2"},
		{dns, "python.org", "886313e1-3b8a-5372-9b90-0c9aee199e5d"},
	} {
		if got := Named(c.space, c.name); got != c.want {
			t.Errorf("%s: got %s; want %s", c.name, got, c.want)
		}
	}
}

func BenchmarkFast(b *testing.B) {
	for b.Loop() {
		Fast()
	}
}
