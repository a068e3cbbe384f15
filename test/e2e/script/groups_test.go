package script

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	groupLine   = regexp.MustCompile(`^([A-Z][A-Z /]+):$`)
	commandLine = regexp.MustCompile(`^   ([a-z][a-z-]+) +[A-Z]`)
	optionLine  = regexp.MustCompile(`^   (--?[A-Za-z][A-Za-z0-9-]*)(?:, (--?[A-Za-z][A-Za-z0-9-]*))? `)
	groupRow    = regexp.MustCompile("(?m)^\\| ([A-Z][A-Z /]+) \\| ([0-9]+) \\| (`[^|]+`) \\|")
)

// TestGroupsOfTheCLI holds the table of docs/clients.md to what the CLI lists as its
// commands: the scripts of a group's row run all commands of the group.
func TestGroupsOfTheCLI(t *testing.T) {
	if found, _ := scriptCondition("cf"); !found {
		t.Skip("the official CLI is not installed")
	}
	help, err := exec.Command("cf", "help", "-a").Output()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	groups := commandGroups(string(help))
	rows := groupRow.FindAllStringSubmatch(string(doc), -1)
	for _, row := range rows {
		commands := groups[row[1]]
		delete(groups, row[1])
		if most, _ := strconv.Atoi(row[2]); len(commands) > most { // an older CLI has fewer
			t.Errorf("%s: the CLI lists %d commands; docs/clients.md says %d", row[1], len(commands), most)
		}
		for _, name := range commands {
			if !scriptsRun(t, row[3], name) {
				t.Errorf("%s: %s does not run cf %s", row[1], row[3], name)
			}
		}
	}
	for name := range maps.Keys(groups) {
		t.Errorf("docs/clients.md has no row for %s", name)
	}
}

// TestFlagsOfTheCLI holds the scripts to the help of the CLI's commands: they use each
// flag of each command, in one of its forms.
func TestFlagsOfTheCLI(t *testing.T) {
	t.Parallel()
	if found, _ := scriptCondition("cf"); !found {
		t.Skip("the official CLI is not installed")
	}
	help, err := exec.Command("cf", "help", "-a").Output()
	if err != nil {
		t.Fatal(err)
	}
	scripts := cliLines(t)
	for group, commands := range commandGroups(string(help)) {
		for _, name := range commands {
			text, err := exec.Command("cf", "help", name).Output()
			if err != nil {
				t.Fatalf("cf help %s: %v", name, err)
			}
			lines := strings.Join(runsOf(name).FindAllString(scripts, -1), "\n")
			for _, forms := range optionsIn(string(text)) {
				if !regexp.MustCompile(`(?m)\s(` + strings.Join(forms, "|") + `)(\s|=|$)`).MatchString(lines) {
					t.Errorf("%s: no script uses %s of cf %s", group, strings.Join(forms, ", "), name)
				}
			}
		}
	}
}

// optionsIn are the forms of each flag in the help of a command.
func optionsIn(help string) (all [][]string) {
	_, options, _ := strings.Cut(help, "\nOPTIONS:\n")
	options, _, _ = strings.Cut(options, "\n\n")
	for line := range strings.Lines(options) {
		if m := optionLine.FindStringSubmatch(line); m != nil {
			all = append(all, slices.DeleteFunc(m[1:], func(form string) bool { return form == "" }))
		}
	}
	return all
}

// cliLines are the lines of all scripts that may run the CLI.
func cliLines(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		all.WriteString(cliPart(t, file))
	}
	return all.String()
}

// cliPart is what a script does with the CLI.
func cliPart(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, cli, _ := strings.Cut(string(text), "[!cf] ")
	return cli
}

// runsOf matches the lines of scripts that run a command.
func runsOf(name string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)(?:^|\s)cf(?:-until (?:'[^']*'|\S+))? ` + name + `(?:[ \t].*)?$`)
}

// commandGroups are the commands that the CLI's help lists, by group.
func commandGroups(help string) map[string][]string {
	all, group := map[string][]string{}, ""
	for line := range strings.Lines(help) {
		line = strings.TrimRight(line, "\n")
		if m := groupLine.FindStringSubmatch(line); m != nil {
			group = m[1]
		}
		if m := commandLine.FindStringSubmatch(line); m != nil {
			all[group] = append(all[group], m[1])
		}
	}
	return all
}

// scriptsRun reports whether one of some scripts runs a command. The list is that of a
// row, like "`a`, `b`".
func scriptsRun(t *testing.T, list, name string) bool {
	t.Helper()
	return slices.ContainsFunc(strings.Split(list, ", "), func(script string) bool {
		return runsOf(name).MatchString(cliPart(t, filepath.Join("testdata", strings.Trim(script, "`")+".txtar")))
	})
}
