package script

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rows are the commands of the official CLI that the daemon serves, each with
// the flags that make it another: push DIR is one of a directory, push MANIFEST
// one of several apps. The script in testdata that says "# row: NAME"
// sends what the CLI sends for it, and then, where the CLI is installed, runs
// it.
var rows = []string{
	"api", "login", "auth", "logout", "target",
	"orgs", "create-org", "delete-org", "spaces", "create-space", "delete-space",
	"push DIR", "push MANIFEST", "push -b", "push -s", "push -c", "push -i", "push -m", "push -k", "push --no-start", "push --no-route",
	"push --random-route", "push --task", "push --droplet", "push --var", "push --vars-file",
	"app", "apps", "start", "stop", "restart", "restage", "scale", "delete -r", "rename", "env", "set-env", "unset-env", "logs", "logs --recent",
	"routes", "create-route", "map-route", "unmap-route", "delete-route", "domains",
	"stacks", "stack", "buildpacks", "create-buildpack", "update-buildpack", "delete-buildpack",
	"packages", "droplets", "download-droplet", "set-droplet", "copy-source", "create-app-manifest", "apply-manifest",
	"events", "run-task", "tasks", "terminate-task", "restart-app-instance", "get-health-check", "set-health-check",
	"revisions", "revision", "rollback", "restart --strategy", "restage --strategy", "push --strategy", "continue-deployment", "cancel-deployment",
	"create-user-provided-service", "update-user-provided-service", "services", "service", "rename-service", "delete-service", "bind-service", "unbind-service",
	"create-service-key", "share-service", "bind-route-service", "unbind-route-service",
	"create-service-broker", "update-service-broker", "delete-service-broker", "marketplace", "service-access", "enable-service-access",
	"disable-service-access", "purge-service-offering", "create-service", "update-service",
	"add-network-policy", "network-policies", "remove-network-policy",
	"feature-flags", "enable-feature-flag", "disable-feature-flag", "curl",
}

var rowLine = regexp.MustCompile(`(?m)^# row: (.+)$`)

// TestEveryRowHasAScript holds the scripts to the rows: one script each, that
// has calls below the row's name, and a line that runs the CLI's command.
func TestEveryRowHasAScript(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		calls, cli, _ := strings.Cut(string(text), "[!cf] stop\n")
		for _, at := range rowLine.FindAllStringSubmatchIndex(calls, -1) {
			names := strings.Split(calls[at[2]:at[3]], "; ")
			have = append(have, names...)
			below, _, _ := strings.Cut(calls[at[1]:], "# row: ")
			if !regexp.MustCompile(`(?m)^(! )?(eventually .*)?(api|as|download|push) `).MatchString(below) {
				t.Errorf("%s: nothing is called for %v", file, names)
			}
			for _, name := range names {
				if !runsCommand(cli, name) {
					t.Errorf("%s does not run cf %s", file, name)
				}
			}
		}
	}
	slices.Sort(have)
	want := slices.Sorted(slices.Values(rows))
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("rows and scripts differ (-rows +scripts):\n%s", diff)
	}
}

// runsCommand finds the row's command, with its flag, among the lines of a
// script.
func runsCommand(script, row string) bool {
	words := strings.Fields(row)
	for line := range strings.Lines(script) {
		fields := strings.Fields(line)
		at := slices.IndexFunc(fields, func(f string) bool { return f == "cf" || f == "cf-until" })
		if at < 0 || !slices.Contains(fields[at:], words[0]) {
			continue
		}
		if len(words) == 1 || !strings.HasPrefix(words[1], "-") || slices.Contains(fields, words[1]) {
			return true
		}
	}
	return false
}
