package datadir

import (
	"errors"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSubnetsOfDirectories(t *testing.T) {
	for dir, first := range map[string]string{Default: "10.251.0.0/16", "/srv/cupola": subnets("/srv/cupola")[0].String()} {
		all := subnets(dir)
		if all[0].String() != first || len(all) < 180 {
			t.Errorf("%s: got %d, the first %s; want %s", dir, len(all), all[0], first)
		}
		for i, a := range all {
			for _, b := range all[:i] {
				if a.Overlaps(b) {
					t.Errorf("%s: %s overlaps %s", dir, a, b)
				}
			}
			if dir != Default && a.String() == "10.251.0.0/16" {
				t.Errorf("%s: the default directory's is among them", dir)
			}
		}
	}
}

func TestKeptSubnet(t *testing.T) {
	dir := t.TempDir()
	if got, err := keptSubnet(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a new directory: got %s, %v", got, err)
	}
	usual := subnets(dir)[0]
	if got := OwnerOf(dir).Subnet; got != usual {
		t.Errorf("a new directory would have %s; want %s", got, usual)
	}
	if err := os.Mkdir(filepath.Join(dir, "netns"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := keptSubnet(dir); err != nil || got != usual {
		t.Errorf("a former version's directory: got %s, %v; want %s", got, err, usual)
	}
	d := &Dir{path: dir, log: slog.New(slog.DiscardHandler)}
	other := netip.MustParsePrefix("100.64.0.0/16")
	for range 2 {
		if err := d.keepSubnet(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		if got, err := keptSubnet(dir); err != nil || got != other || OwnerOf(dir).Subnet != other {
			t.Errorf("got %s, %v; want %s", got, err, other)
		}
	}
	for _, text := range []string{"", "10.1.0.0", "fd00::/16", "10.1.0.0/30"} {
		if err := os.WriteFile(subnetFile(dir), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := keptSubnet(dir); err == nil || !strings.Contains(err.Error(), "write that of its containers") {
			t.Errorf("%q: got %s, %v; want what to do", text, got, err)
		}
	}
}
