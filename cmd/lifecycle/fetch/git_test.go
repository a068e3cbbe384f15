package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// gitIn serves an empty repository, and runs git in it.
func gitIn(t *testing.T) (url string, run func(input string, args ...string) string) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("needs git")
	}
	base, root := served(t)
	run = func(input string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), git, args...)
		cmd.Dir, cmd.Stdin = filepath.Join(root, "repo"), strings.NewReader(input)
		cmd.Env = append(cmd.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+root, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	if out, err := exec.CommandContext(t.Context(), git, "init", "-q", "-b", "main", filepath.Join(root, "repo")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return base + "/repo", run
}

// A few objects are a tree of ten thousand million files.
func TestATreeWithoutEnd(t *testing.T) {
	url, run := gitIn(t)
	entry := "100644 blob " + run("", "hash-object", "-w", "--stdin")
	for range 10 {
		var tree strings.Builder
		for n := range 10 {
			fmt.Fprintf(&tree, "%s\tf%d\n", entry, n)
		}
		entry = "040000 tree " + run(tree.String(), "mktree")
	}
	run("", "update-ref", "refs/heads/main", run("", "commit-tree", "-m", "1", strings.Fields(entry)[2]))
	f := newFetcher()
	f.entries = 1000
	if _, err := f.fetch(t.Context(), source{url: url}, t.TempDir()); err == nil || !strings.Contains(err.Error(), "more than 1000 files and directories") {
		t.Errorf("got %v", err)
	}
}

// A tree that no git would write has a link and a directory of one name.
func TestALinkLeadsNoWriteOut(t *testing.T) {
	url, run := gitIn(t)
	victim := t.TempDir()
	file := run("", "hash-object", "-w", "--stdin")
	link := run(victim, "hash-object", "-w", "--stdin")
	inner := run("100644 blob "+file+"\tevil\n", "mktree")
	tree := run("120000 blob "+link+"\ta\n040000 tree "+inner+"\ta\n", "mktree")
	run("", "update-ref", "refs/heads/main", run("", "commit-tree", "-m", "1", tree))
	_, err := newFetcher().fetch(t.Context(), source{url: url}, t.TempDir())
	if left, _ := os.ReadDir(victim); err == nil || len(left) > 0 {
		t.Errorf("got %v; %v was written", err, left)
	}
}
