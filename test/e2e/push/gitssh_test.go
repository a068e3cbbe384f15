package push

import (
	"bytes"
	"compress/zlib"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

// sshClone is a clone whose remote is pushed to over SSH, by the client of OpenSSH.
type sshClone struct {
	*clone
	keys    string // directory
	address string // of the SSH proxy
}

func newSSHClone(d *e2e.Daemon, app string) *sshClone {
	d.T.Helper()
	for _, program := range []string{"git", "ssh", "ssh-keygen"} {
		if _, err := exec.LookPath(program); err != nil {
			d.T.Skip("needs " + program)
		}
	}
	c := &sshClone{clone: newClone(d, app), keys: d.T.TempDir()}
	c.cupola("git", "remote", app, "--ssh", "--add", "cupola")
	remote := c.git("remote", "get-url", "cupola")
	c.address, _, _ = strings.Cut(strings.TrimPrefix(remote, "ssh://git@"), "/")
	if want := "ssh://git@" + c.address + "/cupola/dev/" + app + ".git"; remote != want {
		d.T.Fatalf("the remote is %s; want %s", remote, want)
	}
	return c
}

// cupola runs our CLI in the clone.
func (c *sshClone) cupola(args ...string) string {
	c.T.Helper()
	cmd := exec.CommandContext(c.T.Context(), c.Binary, args...)
	cmd.Dir, cmd.Env = c.dir, c.env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.T.Fatalf("cupola %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// newKey makes a key of ssh-keygen, and registers it for a user.
func (c *sshClone) newKey(name, user string, args ...string) {
	c.T.Helper()
	file := filepath.Join(c.keys, name)
	if out, err := exec.CommandContext(c.T.Context(), "ssh-keygen", append([]string{"-q", "-N", "", "-C", name, "-f", file}, args...)...).CombinedOutput(); err != nil {
		c.T.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	if user != "" {
		c.cupola("ssh-keys", "add", file+".pub", "--of", user)
	}
}

// ssh is the command line of a client with a key.
func (c *sshClone) ssh(key string, args ...string) []string {
	host, port, _ := net.SplitHostPort(c.address)
	return append([]string{"-F", "/dev/null", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none", "-o", "StrictHostKeyChecking=accept-new",
		"-o", "UserKnownHostsFile=" + filepath.Join(c.keys, "known_hosts"), "-i", filepath.Join(c.keys, key), "-p", port, "git@" + host}, args...)
}

// run runs a command over SSH, and returns all it prints.
func (c *sshClone) run(key, input string, args ...string) (string, error) {
	cmd := exec.CommandContext(c.T.Context(), "ssh", c.ssh(key, args...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// by makes git use a key.
func (c *sshClone) by(key string) *sshClone {
	c.T.Helper()
	args := c.ssh(key)
	c.git("config", "core.sshCommand", "ssh "+strings.Join(args[:len(args)-3], " ")) // git adds port and host
	return c
}

func (c *sshClone) on(t *testing.T) *sshClone {
	other := *c
	other.clone = c.clone.on(t)
	return &other
}

// TestGitPushOverSSH takes an app through its life by git push with a key.
func TestGitPushOverSSH(t *testing.T) {
	t.Parallel()
	d := e2e.SharedDaemon(t)
	c := newSSHClone(d, "ssh-app")
	c.newKey("laptop", "admin", "-t", "ed25519")
	c.newKey("old", "admin", "-t", "rsa", "-b", "2048")
	c.by("laptop").commit(map[string]string{"manifest.yml": staticManifest, "site/Staticfile": "root: .\n", "site/index.html": "first\n", "site/health": "ok\n"})
	c.pushed(true, "main", "remote:   -----> staticfile", "remote: http://ssh-app.localhost:"+strings.Split(d.Addr, ":")[1], "* [new branch]      main -> main")
	d.Answers("ssh-app", "first")
	wantEvents(d, "ssh-app", "audit.app.apply_manifest", "audit.app.create", "audit.app.package.upload", "audit.app.start")
	if list := c.cupola("ssh-keys", "list"); !strings.Contains(list, "laptop") || strings.Count(list, "never") < 1 {
		t.Errorf("the keys are\n%s", list)
	}

	t.Run("a running app is replaced, by HTTP and by SSH", func(t *testing.T) {
		c := c.on(t)
		c.by("old").commit(map[string]string{"site/index.html": "second\n"})
		c.pushed(true, "main", "All instances are replaced", "main -> main")
		c.Answers("ssh-app", "second")
		if tip := c.tip("main"); tip != c.git("rev-parse", "main") {
			t.Errorf("over HTTP main is at %s", tip)
		}
	})
	t.Run("a failed staging moves nothing", func(t *testing.T) {
		c := c.on(t)
		before := c.tip("main")
		c.commit(map[string]string{"site/Staticfile": "", "site/note.txt": "no buildpack takes this\n"})
		c.pushed(false, "main", "! [remote rejected] main -> main (staging failed: NoAppDetectedError", "remote:   None of the buildpacks detected a compatible application")
		if after := c.tip("main"); after != before {
			t.Errorf("main went from %s to %s", before, after)
		}
		c.Answers("ssh-app", "second")
	})
	t.Run("branches and deletions", func(t *testing.T) {
		c := c.on(t)
		c.pushed(true, "main:feature", "feature is kept and not deployed")
		c.pushed(true, ":feature", "[deleted]         feature")
		c.pushed(true, "main:feature", "feature is kept and not deployed")
		c.pushed(true, "main:feature", "Everything up-to-date")
	})
	t.Run("nothing else is served", c.nothingElse)
	t.Run("a killed push leaves nothing", c.killed)
	t.Run("strangers do not stop a push", c.strangers)
	t.Run("keys that are gone", func(t *testing.T) {
		c := c.on(t)
		c.cupola("ssh-keys", "remove", "laptop")
		c.by("laptop").pushed(false, "main", "Permission denied (publickey)")
		c.by("old")
	})
	d.Deleted("ssh-app")
}

// nothingElse asks for what the user git does not get.
func (c *sshClone) nothingElse(t *testing.T) {
	c = c.on(t)
	c.newKey("stranger", "", "-t", "ed25519")
	canary := filepath.Join(t.TempDir(), "canary")
	touch := "touch " + canary
	for _, a := range []struct {
		key, input string
		args       []string
		want       string
	}{
		{"laptop", "", nil, "Hi admin, your key SHA256:"},
		{"laptop", "", []string{touch}, "only git push is served here"},
		{"laptop", "", []string{"git-receive-pack '/cupola/dev/ssh-app.git'; " + touch}, "only git push is served here"},
		{"laptop", "", []string{"git-receive-pack $(" + touch + ")"}, "only git push is served here"},
		{"laptop", "", []string{"git-receive-pack '/cupola/dev/a`" + touch + "`.git'"}, "ERR This is not a repository."}, // of the path's own slashes
		{"laptop", "", []string{"git-receive-pack '/../../etc/passwd'"}, "ERR This is not a repository."},
		{"laptop", "", []string{"git-receive-pack '/../../..'"}, "ERR Organization '..' not found."},
		{"laptop", "", []string{"git-receive-pack '/cupola/nowhere/ssh-app.git'"}, "ERR Space 'nowhere' not found."},
		{"laptop", "", []string{"git-upload-pack '/cupola/dev/ssh-app.git'"}, "takes pushes and gives nothing out"},
		{"laptop", strings.Repeat("garbage!", 100<<17), []string{"git-receive-pack '/cupola/dev/ssh-app.git'"}, "ERR read the push"}, // 100 MB
		{"laptop", strings.Repeat("0010not an order", 100<<16), []string{"git-receive-pack '/cupola/dev/ssh-app.git'"}, "ERR the push has an invalid line"},
		{"laptop", "0000", []string{"-tt", "git-receive-pack '/cupola/dev/ssh-app.git'"}, "PTY allocation request failed"},
		{"laptop", "", []string{"-W", "localhost:22"}, "the user git pushes apps, and forwards nothing"},
		{"laptop", "", []string{"-o", "ExitOnForwardFailure=yes", "-N", "-R", "0:localhost:22"}, "remote port forwarding failed"},
		{"laptop", "", []string{"-s", "sftp"}, "subsystem request failed"},
		{"stranger", "", nil, "Permission denied (publickey)"},
	} {
		out, err := c.run(a.key, a.input, a.args...)
		if err == nil && a.input != "0000" || !strings.Contains(out, a.want) {
			t.Errorf("%v by %s: got %v; want %q\n%.500s", a.args, a.key, err, a.want, out)
		}
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("a shell ran a command of a client")
	}
	if out, err := c.by("laptop").try("", "fetch", "cupola"); err == nil || !strings.Contains(out, "remote error: This repository takes pushes and gives nothing out") {
		t.Errorf("a fetch: got %v\n%s", err, out)
	}
	c.commit(nil)
	c.by("stranger").pushed(false, "main", "Permission denied (publickey)")
	c.by("laptop")
}

// killed kills a client in the middle of its pack.
func (c *sshClone) killed(t *testing.T) {
	c = c.on(t)
	cmd := exec.CommandContext(t.Context(), "ssh", c.ssh("laptop", "git-receive-pack '/cupola/dev/ssh-app.git'")...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	order := strings.Repeat("0", 40) + " " + strings.Repeat("1", 40) + " refs/heads/other\x00report-status side-band-64k"
	fmt.Fprintf(in, "%04x%s0000PACK\x00\x00\x00\x02\x00\x00\x00\x01\xb0\x80\x80\x80\x02", len(order)+4, order) // one blob of 64 MiB
	z := zlib.NewWriter(in)
	if _, err := io.CopyN(z, rand.Reader, 4<<20); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	c.incoming(t, true)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	c.incoming(t, false)
	c.commit(nil)
	c.by("laptop").pushed(true, "main:other", "other is kept and not deployed")
}

// incoming wants what pushes have sent to be there, or gone. The daemon's other tests
// push, too.
func (c *sshClone) incoming(t *testing.T, there bool) {
	t.Helper()
	e2e.Eventually(t, time.Minute, func() string {
		found, err := filepath.Glob(filepath.Join(c.Dir, "git", "incoming-*"))
		if err != nil || (len(found) > 0) != there {
			return fmt.Sprintf("found %v, %v", found, err)
		}
		return ""
	})
}

// strangers pushes beside many connections that never log in.
func (c *sshClone) strangers(t *testing.T) {
	c = c.on(t)
	for n := range 300 {
		conn, err := net.Dial("tcp", c.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if n%2 == 0 {
			_, _ = conn.Write([]byte("SSH-2.0-stranger\r\n"))
		}
	}
	c.commit(map[string]string{"site/note.txt": "", "site/Staticfile": "root: .\n", "site/index.html": "third\n"})
	c.by("laptop").pushed(true, "main", "All instances are replaced")
	c.Answers("ssh-app", "third")
}

// TestSSHKeysOfUsers pushes with keys of users with and without roles, of one who is
// locked, and of one who is gone.
func TestSSHKeysOfUsers(t *testing.T) {
	t.Parallel()
	d := e2e.SharedDaemon(t)
	c := newSSHClone(d, "ssh-roles")
	c.commit(map[string]string{"manifest.yml": staticManifest, "site/Staticfile": "root: .\n", "site/index.html": "hello\n"})
	space, org := d.First("/v3/spaces?names=dev"), d.First("/v3/organizations?names=cupola")
	ids := map[string]string{}
	for _, role := range []string{"space_developer", "space_auditor", "none"} {
		var user struct{ ID string }
		d.API("POST", "/Users", e2e.Doc{"userName": "ssh-" + role, "password": "pw", "emails": []e2e.Doc{{"value": "ssh-" + role}}}, &user)
		ids[role] = user.ID
		c.newKey(role, "ssh-"+role, "-t", "ecdsa")
		if role == "none" {
			continue
		}
		to := e2e.ToOne(user.ID)
		d.API("POST", "/v3/roles", e2e.Doc{"type": "organization_user", "relationships": e2e.Doc{"user": to, "organization": e2e.ToOne(org)}}, nil)
		d.API("POST", "/v3/roles", e2e.Doc{"type": role, "relationships": e2e.Doc{"user": to, "space": e2e.ToOne(space)}}, nil)
	}
	c.by("none").pushed(false, "main", "remote error: Organization 'cupola' not found.")
	c.by("space_auditor").pushed(false, "main", "remote error: You are not authorized to perform the requested action")
	c.by("space_developer").pushed(true, "main", "[new branch]")
	d.Answers("ssh-roles", "hello")

	for range 5 { // wrong passwords
		if _, err := e2e.Login(t.Context(), "http://"+d.Addr, "ssh-space_developer", "wrong"); err == nil {
			t.Fatal("the wrong password is right")
		}
	}
	c.commit(nil)
	c.by("space_developer").pushed(false, "main", "Permission denied (publickey)")
	d.API("PATCH", "/Users/"+ids["space_developer"]+"/status", e2e.Doc{"locked": false}, nil)
	c.pushed(true, "main", "main -> main")
	d.API("DELETE", "/Users/"+ids["space_developer"], nil, nil)
	c.commit(nil)
	c.pushed(false, "main", "Permission denied (publickey)")
	if out, err := d.Run("ssh-keys", "add", filepath.Join(c.keys, "space_developer.pub")); err != nil {
		t.Errorf("a key of a user who is gone is free again: %v\n%s", err, out)
	}
	d.Deleted("ssh-roles")
}
