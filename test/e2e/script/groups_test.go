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
		if got := strconv.Itoa(len(commands)); got != row[2] {
			t.Errorf("%s: the CLI lists %s commands; docs/clients.md says %s", row[1], got, row[2])
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
	line := regexp.MustCompile(`(?m)(?:^|\s)cf(?:-until (?:'[^']*'|\S+))? ` + name + `(?:\s|$)`)
	return slices.ContainsFunc(strings.Split(list, ", "), func(script string) bool {
		text, err := os.ReadFile(filepath.Join("testdata", strings.Trim(script, "`")+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		_, cli, _ := strings.Cut(string(text), "[!cf] ")
		return line.MatchString(cli)
	})
}
