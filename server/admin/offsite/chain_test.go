package offsite

import (
	"fmt"
	"maps"
	"testing"

	"cupola/server/admin/backup"
	"cupola/store"
)

// sentPart is a part as a storage has it.
type sentPart struct {
	after string
	pages map[uint32]int // the number of the change that each has
	files map[string]bool
}

// TestAChainRestoresEveryPart sends thousands of parts, of which each changes few pages and
// brings a file, and expects each part with those that it follows, which are few, to have all.
func TestAChainRestoresEveryPart(t *testing.T) {
	var c chain
	parts, state, files := map[string]sentPart{}, map[uint32]int{1: 0}, map[string]bool{}
	for n := range 5000 {
		page, file := uint32(n*7919%500), fmt.Sprint("file", n)
		state[page], files[file] = n, true
		next, whole := c.next(), c.sent == 0
		changed := &backup.Part{Taken: store.Taken{PageSet: store.PageSet{Whole: whole, Count: 500, Numbers: []uint32{page}}}}
		for also := range next.since {
			changed.Numbers = append(changed.Numbers, also)
		}
		c.changed(changed)
		if n%100 == 50 {
			continue // it was not sent: the next part has it
		}
		p := sentPart{next.after, map[uint32]int{}, map[string]bool{}}
		for _, number := range changed.Numbers {
			p.pages[number] = state[number]
		}
		if whole {
			p.pages = maps.Clone(state)
		}
		var ids []string
		for id := range files {
			if has, _ := next.files.has(id); !has {
				ids, p.files[id] = append(ids, id), true
			}
		}
		name := fmt.Sprintf("%05d", n)
		parts[name] = p
		c.add(name, ids)
		if n%61 == 0 || n > 4990 {
			checkChain(t, parts, name, state, files)
		}
	}
}

func checkChain(t *testing.T, parts map[string]sentPart, name string, state map[uint32]int, files map[string]bool) {
	t.Helper()
	pages, have, length := map[uint32]int{}, map[string]bool{}, 0
	for at := name; at != ""; at = parts[at].after {
		length++
		maps.Copy(have, parts[at].files)
		for page, n := range parts[at].pages {
			if _, newer := pages[page]; !newer {
				pages[page] = n
			}
		}
	}
	if !maps.Equal(pages, state) {
		t.Fatalf("part %s of %d restores other pages", name, length)
	}
	if !maps.Equal(have, files) {
		t.Fatalf("part %s of %d restores %d files of %d", name, length, len(have), len(files))
	}
	if length > 1+levels*(fanout-1) {
		t.Fatalf("part %s follows %d", name, length)
	}
}

// TestAFileThatIsAsBefore changes a file and changes it back, as a key: what a part brought since is
// not what a restore has to have.
func TestAFileThatIsAsBefore(t *testing.T) {
	var c chain
	c.changed(&backup.Part{Taken: store.Taken{PageSet: store.PageSet{Whole: true}}})
	c.add("1", []string{"blobs/aa/aa", "db/admin-password one"})
	c.add("2", []string{"db/admin-password two"})
	c.changed(&backup.Part{})
	for id, want := range map[string][2]bool{"blobs/aa/aa": {true, true}, "db/admin-password one": {false, true}, "db/admin-password two": {true, true}, "ca.pem one": {false, false}} {
		if has, there := c.next().files.has(id); has != want[0] || there != want[1] {
			t.Errorf("%s: got %v, %v; want %v", id, has, there, want)
		}
	}
}
