package network

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// alone runs do in its own network namespace.
func alone(t *testing.T, do func() error) {
	t.Helper()
	needRoot(t)
	if err := elsewhere(do); err != nil {
		t.Error(err)
	}
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return errors.Join(err, errors.New(string(out)))
	}
	return nil
}

func TestUses(t *testing.T) {
	alone(t, func() error {
		for _, line := range [][]string{
			{"link", "set", "lo", "up"}, {"link", "add", "d0", "type", "veth", "peer", "name", "d1"}, {"link", "set", "d1", "up"}, {"link", "set", "d0", "up"}, {"address", "add", "10.7.1.2/24", "dev", "d0"},
			{"route", "add", "default", "via", "10.7.1.1"}, {"route", "add", "10.8.0.0/16", "via", "10.7.1.1", "table", "52"}, {"route", "add", "unreachable", "10.9.0.0/16"},
		} {
			if err := ip(line...); err != nil {
				return err
			}
		}
		if err := Claim("cone", netip.MustParsePrefix("10.7.0.0/30")); err != nil {
			return err
		}
		uses, err := Uses()
		var got []string
		for _, u := range uses {
			text := u.String()
			if u.Of("cone") {
				text += " ours"
			}
			got = append(got, text)
		}
		slices.Sort(got)
		want := []string{"10.7.0.1/32 on lo ours", "10.7.1.0/24 on d0", "10.7.1.2/24 on d0", "10.8.0.0/16 on d0", "10.9.0.0/16", "127.0.0.1/8 on lo"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		return err
	})
}

// TestClaim: of two networks, each gets a separate subnet.
func TestClaim(t *testing.T) {
	first, second := netip.MustParsePrefix("10.7.0.0/16"), netip.MustParsePrefix("10.8.0.0/16")
	alone(t, func() error {
		for range 2 { // it is safe to repeat
			if err := Claim("cone", first); err != nil {
				return err
			}
		}
		if err := Claim("ctwo", first); !errors.Is(err, ErrTaken) {
			t.Errorf("another one got %v; want that it is taken", err)
		}
		if err := errors.Join(Claim("cone", second), Claim("ctwo", first)); err != nil {
			t.Errorf("the first has another one, and the second is refused what it left: %v", err)
		}
		if err := ip("address", "add", "10.9.0.1/32", "dev", "lo"); err != nil {
			return err
		}
		if err := Claim("cone", netip.MustParsePrefix("10.9.0.0/16")); !errors.Is(err, ErrTaken) {
			t.Errorf("an address of the machine's: got %v; want that it is taken", err)
		}
		all, err := addresses()
		if diff := cmp.Diff([]Address{{first.Addr().Next(), "ctwo"}, {second.Addr().Next(), "cone"}}, slices.SortedFunc(slices.Values(all), func(a, b Address) int { return a.Compare(b.Addr) }), sameAddr); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		return err
	})
}

// TestLive follows the containers of a Network.
func TestLive(t *testing.T) {
	n := newNetwork(t, testConfig(t, 24))
	check := func(when string, want bool) {
		t.Helper()
		if got, err := Live(n.cfg.Dir); err != nil || got != want {
			t.Errorf("%s: got %v, %v; want %v", when, got, err, want)
		}
	}
	check("before", false)
	if _, err := n.Acquire(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	check("with a container", true)
	if err := n.Release(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	check("after it", false)
	// As after a reboot: the name, and no namespace.
	if err := os.Symlink("77", filepath.Join(n.cfg.Dir, "ids", "gone")); err != nil {
		t.Fatal(err)
	}
	check("after a boot", false)
	if got, err := Live(filepath.Join(t.TempDir(), "none")); err != nil || got {
		t.Errorf("without a directory: got %v, %v", got, err)
	}
}
