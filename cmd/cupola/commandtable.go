package main

import (
	"strings"

	"cupola/cmd/cupola/cli"
)

// commands are all commands that are not hidden, each before those below it;
// the first is cupola itself.
func commands() ([]*cli.Command, error) {
	parser, err := newParser(&commandLine{})
	if err != nil {
		return nil, err
	}
	var all []*cli.Command
	var walk func(c *cli.Command)
	walk = func(c *cli.Command) {
		all = append(all, c)
		for _, below := range c.Commands {
			if !below.Hidden {
				walk(below)
			}
		}
	}
	walk(parser.Program)
	return all, nil
}

// word is what can come next on a command line.
type word struct{ name, help string }

// nextWords are the commands below c, with their other names.
func nextWords(c *cli.Command) (all []word) {
	for _, below := range c.Commands {
		if below.Hidden {
			continue
		}
		for _, name := range append([]string{below.Name}, below.Aliases...) {
			all = append(all, word{name, below.Help})
		}
	}
	return all
}

// shownFlags are those of c and of all above it that help shows.
func shownFlags(c *cli.Command) (all []*cli.Flag) {
	for _, f := range c.AllFlags() {
		if !f.Hidden {
			all = append(all, f)
		}
	}
	return all
}

// place names where on the command line c is: "" or "/stack/pull".
func place(c *cli.Command) string {
	if c.Parent == nil {
		return ""
	}
	return "/" + strings.Join(c.Path(), "/")
}

// reach lists, by place, the words that lead on to c: its name and its others.
func reach(all []*cli.Command) map[string]string {
	to := map[string]string{}
	for _, c := range all {
		if c.Parent == nil {
			continue
		}
		for _, name := range append([]string{c.Name}, c.Aliases...) {
			to[place(c.Parent)+"/"+name] = place(c)
		}
	}
	return to
}
