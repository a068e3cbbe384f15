package root

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"

	"cupola/rootfs/stack"
	"cupola/rootfs/tree"
)

// maxLinks is how many links the kernel follows.
const maxLinks = 40

// Find opens a regular file or a directory of a mounted root for reading, as a process in it finds it: through links, and in
// what is bound into the root. It must not be used where it matters that the container moves files meanwhile.
func (s *Roots) Find(id, name string) (*os.File, error) {
	root, err := s.openRoot(id)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	binds, err := s.bindsOf(id)
	if err != nil {
		return nil, err
	}
	f, err := view{root, binds}.find(name)
	if err != nil {
		return nil, fmt.Errorf("find %s in %s: %w", name, id, err)
	}
	return f, nil
}

func (s *Roots) bindsOf(id string) ([]stack.Bind, error) {
	rec, err := s.record(id)
	if err != nil {
		return nil, err
	}
	st, release, err := s.stacks.Use(context.Background(), rec.Stack)
	if err != nil {
		return nil, err
	}
	defer release()
	return st.Binds(), nil
}

// view is what a process in a root sees.
type view struct {
	root  *os.File
	binds []stack.Bind
}

// find follows the links of name one by one, since each may lead into another bind.
func (v view) find(name string) (*os.File, error) {
	rest, done := strings.Split(path.Clean("/"+name), "/"), "/"
	for links := 0; len(rest) > 0; {
		at := path.Join(done, rest[0])
		rest = rest[1:]
		target, err := v.link(at)
		switch {
		case err != nil:
			return nil, err
		case target == "":
			done = at
			continue
		}
		if links++; links > maxLinks {
			return nil, fmt.Errorf("more than %d links", maxLinks)
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(at), target)
		}
		rest, done = append(strings.Split(path.Clean(target), "/"), rest...), "/"
	}
	return in(v, done, tree.Find)
}

// link is what a link points to; "" of what is none.
func (v view) link(name string) (string, error) { return in(v, name, tree.ReadLink) }

// in does something with a name that has no link on its way, where it is.
func in[T any](v view, name string, do func(*os.File, string) (T, error)) (result T, err error) {
	for n := len(v.binds) - 1; n >= 0; n-- { // later ones lie above earlier ones
		below, found := strings.CutPrefix(name, strings.TrimSuffix(v.binds[n].Destination, "/"))
		if !found || below != "" && below[0] != '/' || v.binds[n].Source == "" {
			continue
		}
		dir, file := v.binds[n].Source, "."+below
		if below == "" { // what is bound may be a file
			dir, file = path.Split(v.binds[n].Source)
		}
		source, err := os.Open(dir)
		if err != nil {
			return result, err
		}
		defer source.Close()
		return do(source, file)
	}
	return do(v.root, name)
}
