package users

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func open(t *testing.T, dir string) *Claims {
	t.Helper()
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func owner(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestClaimsAreKept until the owner's directory is gone, also over a daemon's end.
func TestClaimsAreKept(t *testing.T) {
	dir, states := filepath.Join(t.TempDir(), "ranges"), t.TempDir()
	first := open(t, dir)
	a := owner(t, states, "a")
	got, err := first.Claim(a)
	if err != nil {
		t.Fatal(err)
	}
	second := open(t, dir) // the next daemon, or another one
	if again, err := second.Claim(a); err != nil || again != got {
		t.Errorf("got %v, %v; want %v, which it has", again, err, got)
	}
	if err := second.Release(a); err != nil {
		t.Fatal(err)
	}
	if again, err := first.Claim(a); err != nil || again != got {
		t.Errorf("got %v, %v; want %v: its directory was there when it was released", again, err, got)
	}
	first.next = int(got.Base-lowest) / Size // the search begins where it is
	if b, err := first.Claim(owner(t, states, "b")); err != nil || b == got {
		t.Errorf("got %v, %v; want another range than %v", b, err, got)
	}
	if err := os.Remove(a); err != nil {
		t.Fatal(err)
	}
	first.next = int(got.Base-lowest) / Size
	if c, err := first.Claim(owner(t, states, "c")); err != nil || c != got {
		t.Errorf("got %v, %v; want %v, which is free", c, err, got)
	}
}

// TestClaimsDiffer between daemons that claim at the same time, until there is none
// left; and no daemon uses those that an administrator gave away.
func TestClaimsDiffer(t *testing.T) {
	dir, states := filepath.Join(t.TempDir(), "ranges"), t.TempDir()
	daemons := []*Claims{open(t, dir), open(t, dir), open(t, dir)}
	for _, c := range daemons {
		c.foreign = []span{{lowest + 100, 1}, {lowest + 5*Size - 1, 2}}
	}
	owners := make(chan string, count)
	for n := range count {
		owners <- owner(t, states, "c"+strings.Repeat("x", n%7)+string(rune('a'+n%26))+filepath.Base(t.TempDir()))
	}
	close(owners)
	var mu sync.Mutex
	var got []uint32
	none := 0
	var claiming sync.WaitGroup
	for _, c := range daemons {
		claiming.Go(func() {
			for o := range owners {
				r, err := c.Claim(o)
				mu.Lock()
				if errors.Is(err, errNone) {
					none++
				} else if err != nil {
					t.Error(err)
				} else {
					got = append(got, r.Base)
				}
				mu.Unlock()
			}
		})
	}
	claiming.Wait()
	slices.Sort(got)
	if n := len(slices.Compact(got)); n != count-3 || none != 3 {
		t.Errorf("got %d different ranges and %d refusals; want %d and 3", n, none, count-3)
	}
	for _, taken := range []uint32{lowest, lowest + 4*Size, lowest + 5*Size} {
		if slices.Contains(got, taken) {
			t.Errorf("%d was given, which is another's", taken)
		}
	}
}

func TestParseSubIDs(t *testing.T) {
	got := parseSubIDs("anna:100000:65536\n\nbad\nben:x:1\nc:2013265920:0\n1000:4294967295:65536\r\n")
	if want := []span{{100000, 65536}, {4294967295, 65536}}; !slices.Equal(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
}

func FuzzParseSubIDs(f *testing.F) {
	f.Add("a:1:2\nb:3:4")
	f.Fuzz(func(t *testing.T, text string) {
		c := Claims{foreign: parseSubIDs(text)}
		for _, s := range c.foreign {
			if s.count == 0 {
				t.Error("an empty span")
			}
		}
		c.isForeign(one0)
	})
}

var one0 = Range{lowest, Size}

func TestHost(t *testing.T) {
	r := Range{Base: 1000, Size: 65536}
	for id, want := range map[uint32]uint32{0: 1000, 2000: 3000, 65535: 66535, 65536: 66534, 1 << 31: 66534} {
		if got := r.Host(id); got != want {
			t.Errorf("host ID of %d: got %d; want %d", id, got, want)
		}
	}
	if (Range{}).Host(5) != 5 || (Range{Base: 10, Size: 100}).Host(200) != 109 {
		t.Error("ranges without size or without nobody are wrong")
	}
	for host, want := range map[uint32]uint32{1000: 0, 3000: 2000, 66535: 65535, 66536: 66536, 0: 0} {
		if got := r.Inside(host); got != want {
			t.Errorf("container ID of %d: got %d; want %d", host, got, want)
		}
	}
	if got := (Range{}).Inside(7); got != 7 {
		t.Errorf("got %d; want the ID itself", got)
	}
}
