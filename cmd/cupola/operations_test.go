package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cupola/cmd/cupola/cli"
	"cupola/server/admin"
	"cupola/server/kube"
)

// commandOf is the node of a command, by its words.
func commandOf(t *testing.T, words string) *cli.Command {
	t.Helper()
	all, err := commands()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range all {
		if strings.Join(n.Path(), " ") == words {
			return n
		}
	}
	t.Fatalf("there is no command %q", words)
	return nil
}

// TestOperationsAreCommands holds that each operation that operators can ask for
// has a command with the same name, which shows its help.
func TestOperationsAreCommands(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range admin.Table() {
		name, help := o.Describe()
		if seen[name] {
			t.Errorf("two operations are called %q", name)
		}
		seen[name] = true
		if got := commandOf(t, name).Help; got != help || help == "" {
			t.Errorf("%s: got the help %q; want %q", name, got, help)
		}
	}
}

// optionRow is a row of the README's table of options.
var optionRow = regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\| `(CUPOLA_[A-Z_]+)` \\| ([^|]*) \\|(.*)$")

// TestTheReadmeListsTheOptions holds the README's table of options to the flags
// of cupola serve: their names, their environment variables and their defaults.
func TestTheReadmeListsTheOptions(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]*cli.Flag{}
	for _, f := range shownFlags(commandOf(t, "serve")) {
		if !f.Hidden && len(f.Envs) > 0 && f.Name != "config" {
			flags[f.Name] = f
		}
	}
	for _, row := range optionRow.FindAllStringSubmatch(string(text), -1) {
		f := flags[row[1]]
		if f == nil {
			t.Errorf("README.md lists --%s, which cupola serve does not have, or twice", row[1])
			continue
		}
		delete(flags, row[1])
		if f.Envs[0] != row[2] {
			t.Errorf("README.md: --%s has the environment variable %s; want %s", row[1], row[2], f.Envs[0])
		}
		if f.HasDefault && strings.Trim(row[3], "`") != f.Default {
			t.Errorf("README.md: --%s has the default %s; want %s", row[1], row[3], f.Default)
		}
		for other := range flags {
			if strings.Contains(row[4], "`--"+other+"`") {
				delete(flags, other) // it is listed beside the flag that it goes with
			}
		}
	}
	if len(flags) > 0 {
		t.Errorf("README.md lists none of %q", slices.Sorted(maps.Keys(flags)))
	}
}

// TestFlagsAgree holds that flags of the same name and environment variable have
// the same default, whichever command they are of.
func TestFlagsAgree(t *testing.T) {
	var c commandLine
	parser, err := newParser(&c)
	if err != nil {
		t.Fatal(err)
	}
	serve := map[string]*cli.Flag{}
	for _, f := range shownFlags(commandOf(t, "serve")) {
		serve[f.Name] = f
	}
	compared := 0
	var walk func(n *cli.Command)
	walk = func(n *cli.Command) {
		for _, f := range n.Flags {
			s := serve[f.Name]
			if s == nil || len(f.Envs) == 0 || !slices.Equal(f.Envs, s.Envs) {
				continue
			}
			compared++
			// What a running daemon may say, too, has its default in the help.
			if f.Default != s.Default && (f.Default != "" || !strings.Contains(f.Help, "or else "+s.Default)) {
				t.Errorf("%s --%s: got the default %q; want %q as of cupola serve", n.Path(), f.Name, f.Default, s.Default)
			}
		}
		for _, child := range n.Commands {
			walk(child)
		}
	}
	walk(parser.Program)
	if compared < len(serve) {
		t.Errorf("compared %d flags; want at least %d", compared, len(serve)-1)
	}
}

// TestEveryCommandRuns holds that each command has a method Run, which nothing
// else looks for before a user does.
func TestEveryCommandRuns(t *testing.T) {
	all, err := commands()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if _, ok := c.Target().(runner); !ok && len(c.Commands) == 0 {
			t.Errorf("%q does not run", c.Path())
		}
	}
}

// TestDefaultsOfOthers are those that a tag has to repeat.
func TestDefaultsOfOthers(t *testing.T) {
	for _, f := range commandOf(t, "deployment render").Flags {
		if f.Name == "zone-label" && f.Default != kube.DefaultZoneLabel {
			t.Errorf("--zone-label: got the default %q; want %q", f.Default, kube.DefaultZoneLabel)
		}
	}
}
