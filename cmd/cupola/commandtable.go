package main

import (
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

// node is a command of the table that --help, the manual and the completion
// of shells are made of.
type node struct {
	*kong.Node
	path []string // its names, without cupola's own
}

// commands are all commands that are not hidden, each before those below it;
// the first is cupola itself.
func commands() ([]node, error) {
	parser, err := newParser(&cli{}, os.Stdout, os.Stderr, func(int) {})
	if err != nil {
		return nil, err
	}
	var all []node
	var walk func(n *kong.Node, path []string)
	walk = func(n *kong.Node, path []string) {
		all = append(all, node{n, path})
		for _, child := range n.Children {
			if !child.Hidden {
				walk(child, append(path[:len(path):len(path)], child.Name))
			}
		}
	}
	walk(parser.Model.Node, nil)
	return all, nil
}

// word is what can come next on a command line.
type word struct{ name, help string }

// words are the commands below c, with their other names.
func (c node) words() (all []word) {
	for _, child := range c.Children {
		if child.Hidden {
			continue
		}
		for _, name := range append([]string{child.Name}, child.Aliases...) {
			all = append(all, word{name, child.Help})
		}
	}
	return all
}

// flags are those of c and of all above it.
func (c node) flags() (all []*kong.Flag) {
	for _, group := range c.AllFlags(true) {
		all = append(all, group...)
	}
	return all
}

// takesValue tells whether a flag is followed by a value.
func takesValue(f *kong.Flag) bool { return !f.IsBool() && !f.IsCounter() }

// place names where on the command line c is: "" or "/stack/pull".
func (c node) place() string {
	if len(c.path) == 0 {
		return ""
	}
	return "/" + strings.Join(c.path, "/")
}

// reach lists, by place, the words that lead on to c: its name and its others.
func reach(all []node) map[string]string {
	to := map[string]string{}
	for _, c := range all {
		if len(c.path) == 0 {
			continue
		}
		above := node{path: c.path[:len(c.path)-1]}.place()
		for _, name := range append([]string{c.Name}, c.Aliases...) {
			to[above+"/"+name] = c.place()
		}
	}
	return to
}
