package stack

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// A stack that replaces another one of its name has a separate directory, since containers
// may have the other one mounted: NAME, then NAME~2, NAME~3 and so on. The last one counts.
const generationMark = "~"

// nameOf is the name of the stack that a directory is of, and which of them it is.
func nameOf(id string) (name string, generation int) {
	name, number, ok := strings.Cut(id, generationMark)
	if !ok {
		return name, 1
	}
	generation, err := strconv.Atoi(number)
	if err != nil || generation < 2 {
		return "", 0
	}
	return name, generation
}

// nextID is the directory of a stack that replaces the one that is there, if one is.
func (s *Stacks) nextID(name string) string {
	st, ok := s.Get(name)
	if !ok {
		return name
	}
	_, generation := nameOf(st.id)
	return fmt.Sprint(name, generationMark, generation+1)
}

// isNewer reports whether a directory is of a later stack than the one known by its name.
func (s *Stacks) isNewer(id string) bool {
	name, generation := nameOf(id)
	st, ok := s.Get(name)
	if !ok {
		return name != ""
	}
	_, known := nameOf(st.id)
	return generation > known
}

// generations are the directories of all stacks of a name that are there.
func (s *Stacks) generations(name string) (ids []string, err error) {
	entries, err := os.ReadDir(s.store.Path(Dir))
	for _, e := range entries {
		if of, _ := nameOf(e.Name()); of == name && !strings.HasPrefix(e.Name(), ".") {
			ids = append(ids, e.Name())
		}
	}
	return ids, err
}

// dropReplaced deletes the directories of stacks that were replaced, but for those that
// containers use.
func (s *Stacks) dropReplaced(name string) error {
	return s.store.Collect(func(used func(string) bool) error {
		ids, err := s.generations(name)
		if err != nil {
			return err
		}
		st, ok := s.Get(name)
		for _, id := range ids {
			if !ok || id == st.id || used(id) {
				continue
			}
			if err := s.store.Trash.Put(s.store.Path(Dir, id)); err != nil {
				return err
			}
		}
		return nil
	})
}
