package cells

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
)

func TestCellsSayWhatIsWrong(t *testing.T) {
	long := strings.Repeat("x", 64)
	for _, test := range []struct {
		name string
		c    Config
		want string
	}{
		{"no name", Config{Cells: []Cell{{}}}, `cells[0].name "": give it up to 63 letters`},
		{"name twice", Config{Cells: []Cell{{Name: "a"}, {Name: "A"}}}, `cells[1].name "A": another cell has it; give each its own`},
		{"long tag", Config{Cells: []Cell{{Name: "a", Tags: []string{"b", long}}}}, `cells[0].tags[1] "` + long + `" has 64 characters: shorten it to fewer than 64`},
		{"empty tag", Config{Cells: []Cell{{Name: "a", Tags: []string{" "}}}}, "cells[0].tags[0] is empty: name the tag, or leave it out"},
		{"empty required tag", Config{Cells: []Cell{{Name: "a", Required: []string{""}}}}, "cells[0].required_tags[0] is empty: name the tag, or leave it out"},
		{"zone", Config{Cells: []Cell{{Name: "a", Zone: "a b"}}}, `cells[0].zone "a b": give it up to 63 letters`},
		{"negative", Config{Cells: []Cell{{Name: "a", MemoryMB: -1}}}, "cells[0].memory is negative: give a positive one, or leave it out"},
		{"provider", Config{Cells: []Cell{{Name: "a", Providers: []string{"ftp"}}}}, `cells[0].rootfs_providers[0] "ftp": the providers are docker and oci`},
		{"rootfs name", Config{Preloaded: Preloaded{"a/b": ""}}, "preloaded_rootfses.a/b"},
		{"rootfs", Config{Preloaded: Preloaded{"a": "docker://"}}, "preloaded_rootfses.a: give the name of a stack, the path of a directory or archive, or docker://host/name:tag"},
	} {
		err := test.c.Normalize()
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v; want %q in it", test.name, err, test.want)
		}
	}
	c := Config{Preloaded: Preloaded{"a": "/x"}, Cells: []Cell{{Name: "c", Preloaded: Preloaded{"a": "/y"}}}}
	if _, err := c.Preloads(); err == nil {
		t.Error("got no error for two root filesystems of one name")
	}
}

func TestTheCellsShareTheMachine(t *testing.T) {
	c := Config{Cells: []Cell{{Name: "a", MemoryMB: 1000, Tags: []string{" Skynet "}, Required: []string{"GPU"}, Zone: "z2"}, {Name: "b"}, {Name: "c", DiskMB: 5, Containers: 3}}}
	if err := c.Normalize(); err != nil {
		t.Fatal(err)
	}
	both := []string{"docker", "oci"}
	want := List{
		{Name: "a", Tags: []string{"skynet", "gpu"}, Required: []string{"gpu"}, Zone: "z2", MemoryMB: 1000, DiskMB: 50, Containers: 250, Providers: both},
		{Name: "b", Tags: []string{}, Required: []string{}, Zone: "z1", MemoryMB: 1500, DiskMB: 50, Containers: 250, Providers: both},
		{Name: "c", Tags: []string{}, Required: []string{}, Zone: "z1", MemoryMB: 1500, DiskMB: 5, Containers: 3, Providers: both},
	}
	if diff := cmp.Diff(want, share(c.Cells, lrp.Cell{MemoryMB: 4000, DiskMB: 105})); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}
