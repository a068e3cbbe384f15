package push

import (
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

// clone is a git repository with an app, and a remote named cupola.
type clone struct {
	*e2e.Daemon
	dir string
	app string
}

// newClone makes a repository whose remote 'cupola git remote' adds.
func newClone(d *e2e.Daemon, app string) *clone {
	d.T.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		d.T.Skip("needs git")
	}
	c := &clone{d, d.T.TempDir(), app}
	c.git("init", "-q", "-b", "main")
	cmd := exec.CommandContext(d.T.Context(), d.Binary, "git", "remote", app, "--add", "cupola")
	cmd.Dir, cmd.Env = c.dir, c.env()
	if out, err := cmd.CombinedOutput(); err != nil {
		d.T.Fatalf("cupola git remote: %v\n%s", err, out)
	}
	return c
}

func (c *clone) env() []string {
	return append(os.Environ(), "HOME="+c.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "CUPOLA_API=http://"+c.Addr, "CUPOLA_PASSWORD="+e2e.AdminPassword,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
}

// try runs git in the repository.
func (c *clone) try(input string, args ...string) (string, error) {
	cmd := exec.CommandContext(c.T.Context(), "git", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = c.dir, c.env(), strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *clone) git(args ...string) string {
	c.T.Helper()
	out, err := c.try("", args...)
	if err != nil {
		c.T.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(out)
}

// commit writes files, "" for one to remove, and commits all.
func (c *clone) commit(files map[string]string) {
	c.T.Helper()
	for name, content := range files {
		file := filepath.Join(c.dir, name)
		if content == "" {
			if err := os.Remove(file); err != nil {
				c.T.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			c.T.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
			c.T.Fatal(err)
		}
	}
	c.git("add", "-A")
	c.git("commit", "-q", "-m", "a change", "--allow-empty")
}

// pushed pushes refs, and wants all of the texts in what git prints.
func (c *clone) pushed(ok bool, refs string, want ...string) string {
	c.T.Helper()
	out, err := c.try("", append([]string{"push", "cupola"}, strings.Fields(refs)...)...)
	if (err == nil) != ok {
		c.T.Fatalf("git push %s: got %v; want that it works: %t\n%s", refs, err, ok, out)
	}
	for _, text := range want {
		if !strings.Contains(out, text) {
			c.T.Errorf("git push %s does not print %q:\n%s", refs, text, out)
		}
	}
	return out
}

// tip is what the daemon says a branch is at.
func (c *clone) tip(branch string) string {
	c.T.Helper()
	req, err := http.NewRequestWithContext(c.T.Context(), "GET", "http://"+c.Addr+"/git/cupola/dev/"+c.app+".git/info/refs?service=git-receive-pack", nil)
	if err != nil {
		c.T.Fatal(err)
	}
	req.SetBasicAuth("admin", e2e.AdminPassword)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.T.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		c.T.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "\x00")
		if before, ok := strings.CutSuffix(strings.TrimSpace(line), " refs/heads/"+branch); ok {
			return before[len(before)-40:]
		}
	}
	return ""
}

const staticManifest = "applications:\n- name: other\n  path: site\n  memory: 64M\n  disk_quota: 64M\n  stack: minifs\n"

// TestGitPush takes an app through its life by git push alone.
func TestGitPush(t *testing.T) {
	t.Parallel()
	d := e2e.SharedDaemon(t)
	c := newClone(d, "git-app")
	c.commit(map[string]string{"manifest.yml": staticManifest, "site/Staticfile": "root: .\n", "site/index.html": "first\n", "site/health": "ok\n", "README": "not pushed\n"})
	out := c.pushed(true, "main", "remote:   -----> staticfile", "http://git-app.localhost:"+strings.Split(d.Addr, ":")[1], "* [new branch]      main -> main")
	var remote []string
	for line := range strings.Lines(out) {
		if text, ok := strings.CutPrefix(line, "remote: "); ok {
			remote = append(remote, strings.TrimSpace(text))
		}
	}
	if last := remote[len(remote)-1]; !strings.HasPrefix(last, "http://git-app.") {
		t.Errorf("the last line is %q; want the URL", last)
	}
	d.Answers("git-app", "first")
	wantEvents(d, "git-app", "audit.app.apply_manifest", "audit.app.build.create", "audit.app.create", "audit.app.droplet.create", "audit.app.droplet.mapped", "audit.app.map-route", "audit.app.package.create", "audit.app.package.upload", "audit.app.start")

	t.Run("a running app is replaced", func(t *testing.T) {
		c, d := c.on(t), d.On(t)
		traffic := d.Send("git-app.localhost", 50)
		c.commit(map[string]string{"site/index.html": "second\n"})
		c.pushed(true, "main", "All instances are replaced", "main -> main")
		if failed := traffic.End(t); len(failed) > 0 {
			t.Errorf("%d requests failed: %+v", len(failed), failed[0])
		}
		d.Answers("git-app", "second")
		wantEvents(d, "git-app", "audit.app.deployment.create")
	})
	t.Run("a failed staging moves nothing", func(t *testing.T) {
		c, d := c.on(t), d.On(t)
		before := c.tip("main")
		c.commit(map[string]string{"site/Staticfile": "", "site/note.txt": "no buildpack takes this\n"})
		c.pushed(false, "main", "! [remote rejected] main -> main (staging failed: NoAppDetectedError", "remote:   None of the buildpacks detected a compatible application")
		if after := c.tip("main"); before == "" || after != before {
			t.Errorf("main went from %s to %s", before, after)
		}
		d.Answers("git-app", "second")
		c.commit(map[string]string{"site/Staticfile": "root: .\n", "site/index.html": "third\n"})
		c.pushed(true, "main")
		d.Answers("git-app", "third")
	})
	t.Run("other branches are kept", func(t *testing.T) {
		c, d := c.on(t), d.On(t)
		c.git("checkout", "-q", "-b", "feature")
		c.commit(map[string]string{"site/index.html": "feature\n"})
		c.pushed(true, "feature", "feature is kept and not deployed: only main and master are")
		d.Answers("git-app", "third")
		c.pushed(true, "feature:main", "All instances are replaced")
		d.Answers("git-app", "feature")
		c.git("checkout", "-q", "main")
		c.git("merge", "-q", "feature")
		c.pushed(true, "main :feature", "[deleted]         feature")
		if tip := c.tip("feature"); tip != "" {
			t.Errorf("feature is at %s", tip)
		}
	})
	t.Run("a crash leaves what runs", func(t *testing.T) {
		c, d := c.on(t), d.On(t)
		c.commit(map[string]string{"manifest.yml": staticManifest + "  command: echo no way to start; exit 7\n"})
		c.pushed(false, "main", "! [remote rejected] main -> main (the new instance crashed, and the app runs on as before: Exited with status 7", "no way to start")
		d.Answers("git-app", "feature")
	})
	t.Run("with its app the repository goes", func(t *testing.T) {
		c, d := c.on(t), d.On(t)
		dir := filepath.Join(d.Dir, "git", d.App("git-app")+".git")
		if _, err := os.Stat(dir); err != nil {
			t.Fatal(err)
		}
		d.Deleted("git-app")
		e2e.Eventually(t, time.Minute, func() string {
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				return fmt.Sprintf("%s is there: %v", dir, err)
			}
			return ""
		})
		c.commit(map[string]string{"manifest.yml": staticManifest})
		c.pushed(true, "main", "[new branch]")
		d.Answers("git-app", "feature")
	})
}

func (c *clone) on(t *testing.T) *clone {
	other := *c
	other.Daemon = c.Daemon.On(t)
	return &other
}

// wantEvents wants audit events of types about an app.
func wantEvents(d *e2e.Daemon, app string, types ...string) {
	d.T.Helper()
	var events struct{ Resources []struct{ Type string } }
	d.API("GET", "/v3/audit_events?per_page=500&target_guids="+d.App(app), nil, &events)
	have := map[string]bool{}
	for _, e := range events.Resources {
		have[e.Type] = true
	}
	for _, want := range types {
		if !have[want] {
			d.T.Errorf("there is no event %s, but %v", want, slices.Sorted(maps.Keys(have)))
		}
	}
}

// TestGitRemote asks for the addresses of an app that exists, and of ones that do not.
func TestGitRemote(t *testing.T) {
	t.Parallel()
	d := e2e.SharedDaemon(t)
	d.API("POST", "/v3/apps", e2e.Doc{"name": "remote, 50%", "relationships": e2e.Doc{"space": e2e.ToOne(d.First("/v3/spaces?names=dev"))}}, nil)
	for _, c := range []struct {
		args       []string
		env, ended string
		want, note string
	}{
		{[]string{"remote, 50%"}, "", "", "/git/cupola/dev/remote%2C%2050%25.git\n", ""},
		{[]string{"new"}, "", "", "/git/cupola/dev/new.git\n", "There is no app new in space dev of org cupola: the first push creates it. For an app elsewhere, give --org and --space."},
		{[]string{"new"}, "CUPOLA_PASSWORD=wrong", "", "/git/cupola/dev/new.git\n", ""},
		{[]string{"new", "--space", "nowhere"}, "", "exit status 1", "", "there is no space nowhere: name the app's place with --org and --space (now cupola and nowhere)"},
		{[]string{"new", "--org", "none"}, "", "exit status 1", "", "there is no org none: name the app's place with --org and --space (now none and dev)"},
	} {
		var out, errs strings.Builder
		cmd := exec.CommandContext(t.Context(), d.Binary, append([]string{"git", "remote"}, c.args...)...)
		cmd.Env = append(os.Environ(), "CUPOLA_API=http://"+d.Addr, "CUPOLA_PASSWORD="+e2e.AdminPassword, c.env)
		cmd.Stdout, cmd.Stderr = &out, &errs
		ended := ""
		if err := cmd.Run(); err != nil {
			ended = err.Error()
		}
		if ended != c.ended || !strings.HasSuffix(out.String(), c.want) || !strings.Contains(errs.String(), c.note) || c.note == "" && errs.Len() > 0 {
			t.Errorf("cupola git remote %q %s: got %s\n%s\n%s", c.args, c.env, ended, out.String(), errs.String())
		}
	}
}

// TestGitPushCredentials pushes as users with and without roles.
func TestGitPushCredentials(t *testing.T) {
	t.Parallel()
	d := e2e.SharedDaemon(t)
	c := newClone(d, "git-roles")
	c.commit(map[string]string{"manifest.yml": staticManifest, "site/Staticfile": "root: .\n", "site/index.html": "hello\n"})
	space := d.First("/v3/spaces?names=dev")
	org := d.First("/v3/organizations?names=cupola")
	for _, role := range []string{"space_developer", "space_supporter", "space_auditor", "space_manager", "none"} {
		var user struct{ ID string }
		d.API("POST", "/Users", e2e.Doc{"userName": "git-" + role, "password": "pw", "emails": []e2e.Doc{{"value": "git-" + role}}}, &user)
		if role == "none" {
			continue
		}
		of := e2e.Doc{"user": e2e.ToOne(user.ID)}
		d.API("POST", "/v3/roles", e2e.Doc{"type": "organization_user", "relationships": e2e.Doc{"user": e2e.ToOne(user.ID), "organization": e2e.ToOne(org)}}, nil)
		of["space"] = e2e.ToOne(space)
		d.API("POST", "/v3/roles", e2e.Doc{"type": role, "relationships": of}, nil)
	}
	token := func(name, password string) string {
		client, err := e2e.Login(t.Context(), "http://"+d.Addr, name, password)
		if err != nil {
			t.Fatal(err)
		}
		return client.Token
	}
	for _, a := range []struct {
		user, password string
		want           string // "" is that it works
	}{
		{"git-none", "pw", "remote: Organization 'cupola' not found."},
		{"git-space_auditor", "pw", "remote: You are not authorized to perform the requested action"},
		{"git-space_manager", "pw", "remote: You are not authorized to perform the requested action"},
		{"git-space_supporter", "pw", "remote: You are not authorized to perform the requested action"},
		{"git-space_developer", "wrong", "Authentication failed"},
		{"cf", "eyJhbGciOiJub25lIn0.e30.", "Authentication failed"},
		{"cf", token("git-space_auditor", "pw"), "remote: You are not authorized to perform the requested action"},
		{"git-space_developer", "pw", ""},
		{"cf", token("git-space_developer", "pw"), ""},
	} {
		c.commit(nil)
		out, err := c.try("", "push", fmt.Sprintf("http://%s:%s@%s/git/cupola/dev/git-roles.git", a.user, a.password, d.Addr), "main")
		if a.want == "" && err != nil || a.want != "" && (err == nil || !strings.Contains(out, a.want)) {
			t.Errorf("as %s: got %v; want %q\n%s", a.user, err, a.want, out)
		}
	}
	for path, want := range map[string]string{
		"cupola/nowhere/git-roles.git": "Space 'nowhere' not found.", "cupola/dev": "This is not a repository.",
	} {
		out, err := c.try("", "push", fmt.Sprintf("http://admin:%s@%s/git/%s", e2e.AdminPassword, d.Addr, path), "main")
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: got %v; want %q\n%s", path, err, want, out)
		}
	}
	if out, err := c.try("", "fetch", "cupola"); err == nil || !strings.Contains(out, "takes pushes and gives nothing out") {
		t.Errorf("a fetch: got %v\n%s", err, out)
	}
	d.Deleted("git-roles")
}

// TestHostileGitPushes pushes what no git would write, what is too much, and what a
// push does not bring.
func TestHostileGitPushes(t *testing.T) {
	t.Parallel()
	d := e2e.SharedDaemon(t)
	c := newClone(d, "git-hostile")
	blob := func(content string) string { return c.input(content, "hash-object", "-w", "--stdin") }
	tree := func(lines ...string) string { return c.input(strings.Join(lines, "\n")+"\n", "mktree", "--missing") }
	commit := func(tree string) { c.git("update-ref", "refs/heads/main", c.git("commit-tree", "-m", "1", tree)) }
	file := "100644 blob " + blob("content") + "\t"
	bomb := file + "f"
	for range 10 {
		var lines []string
		at := tree(bomb)
		for n := range 10 {
			lines = append(lines, fmt.Sprintf("040000 tree %s\td%d", at, n))
		}
		bomb = "040000 tree " + tree(lines...) + "\tdeep"
	}
	for _, h := range []struct{ name, tree, want string }{
		{".git", tree("040000 tree " + tree(file+"config") + "\t.GIT"), `has an entry named ".GIT"`},
		{"dots", tree("040000 tree " + tree(file+"passwd") + "\t.."), `has an entry named ".."`},
		{"a tree without end", tree(bomb), "more than 300000 files and directories"},
		{"a submodule", tree(file+"index.html", "160000 commit "+strings.Repeat("1", 40)+"\tlib"), "lib is a submodule"},
		{"a link out", tree(file+"index.html", "120000 blob "+blob("../../etc/passwd")+"\tlink"), "which is outside the app's directory"},
		{"no files", tree(file + ".gitignore"), "the commit has no files to push"},
		{"a manifest with variables", tree("100644 blob " + blob("applications:\n- name: ((name))\n") + "\tmanifest.yml"), "git push gives no --var"},
		{"a manifest of many", tree("100644 blob " + blob("applications:\n- name: a\n- name: b\n") + "\tmanifest.yml"), "has no app git-hostile"},
		{"a manifest's path", tree("100644 blob " + blob("applications:\n- path: ../..\n") + "\tmanifest.yml"), "leads out of the repository"},
		{"a manifest's file", tree(file+"app.jar", "100644 blob "+blob("applications:\n- path: app.jar\n")+"\tmanifest.yml"), "is a file: git push deploys directories"},
		{"a docker image", tree("100644 blob " + blob("applications:\n- docker: {image: x}\n") + "\tmanifest.yml"), "names a docker image"},
	} {
		commit(h.tree)
		if out := c.pushed(false, "--force main", "! [remote rejected] main -> main ("); !strings.Contains(out, h.want) {
			t.Errorf("%s: want %q:\n%s", h.name, h.want, out)
		}
	}
	commit(tree(file + "index.html"))
	none := newClone(d, "git-none")
	none.commit(map[string]string{"index.html": "none\n"})
	none.pushed(false, "main:refs/heads/other", "there is no app git-none yet: push main first")
	c.pushed(false, "main:refs/notes/x", "only branches and tags are accepted")
	if tip := c.tip("main"); tip != "" {
		t.Errorf("main is at %s", tip)
	}
	e2e.Eventually(t, time.Minute, func() string { // the daemon's other tests push, too
		left, err := filepath.Glob(filepath.Join(d.Dir, "git", "incoming-*"))
		if err != nil || len(left) > 0 {
			return fmt.Sprintf("what pushes have sent is left: %v, %v", left, err)
		}
		return ""
	})
}

// input runs git with an input.
func (c *clone) input(text string, args ...string) string {
	c.T.Helper()
	out, err := c.try(text, args...)
	if err != nil {
		c.T.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(out)
}

// TestGitPushesOfAllKinds pushes a large file, pointers of Git LFS, links and modes, and
// from a shallow clone.
func TestGitPushesOfAllKinds(t *testing.T) {
	t.Parallel()
	d := e2e.SharedDaemon(t)
	c := newClone(d, "git-kinds")
	large := make([]byte, 8<<20)
	if _, err := rand.Read(large); err != nil {
		t.Fatal(err)
	}
	c.commit(map[string]string{"manifest.yml": "applications:\n- memory: 64M\n  disk_quota: 64M\n  stack: minifs\n", "Staticfile": "root: .\n", "index.html": "kinds\n", ".cfignore": "*.secret\n", "a.secret": "hidden\n",
		"large.bin": string(large), "model.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n"})
	if err := os.Symlink("index.html", filepath.Join(c.dir, "other.html")); err != nil {
		t.Fatal(err)
	}
	c.git("add", "-A")
	c.git("commit", "-q", "-m", "2")
	c.pushed(true, "main", "Git LFS keeps the content of model.bin elsewhere")
	d.Answers("git-kinds", "kinds")
	for path, want := range map[string]int{"/other.html": 200, "/large.bin": 200, "/a.secret": 404, "/manifest.yml": 404} {
		if status, _, err := d.Get("git-kinds.localhost", path); err != nil || status != want {
			t.Errorf("%s: got %d, %v; want %d", path, status, err, want)
		}
	}
	shallow := *c
	shallow.dir = t.TempDir()
	if out, err := c.try("", "clone", "-q", "--depth", "1", "file://"+c.dir, shallow.dir); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	shallow.git("remote", "add", "cupola", fmt.Sprintf("http://admin:%s@%s/git/cupola/dev/git-kinds.git", e2e.AdminPassword, d.Addr))
	shallow.commit(map[string]string{"index.html": "shallow\n"})
	shallow.pushed(true, "main", "This push comes from a shallow clone and is not kept")
	d.Answers("git-kinds", "shallow")
	c.commit(map[string]string{"index.html": "whole\n"})
	c.pushed(true, "--force main", "[new branch]")
	d.Answers("git-kinds", "whole")
	d.Deleted("git-kinds")
}
