package web

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"cupola/test/e2e"
)

// The users of the test have this password.
const password = "a-password-of-users"

// manifest pushes testdata/noisy on the stack that is on every machine.
const manifest = `applications:
- name: %s
  stack: minifs
  buildpacks: [binary_buildpack]
  command: ./noisy
  memory: 64M
  disk_quota: 64M
  health-check-type: %s
  env: {COLOUR: blue%s}
`

// TestConsole drives the console in one browser, on one daemon.
func TestConsole(t *testing.T) {
	t.Parallel()
	binary := e2e.NeedBinary(t)
	modules := needBrowser(t)
	d := e2e.StartDaemon(t, binary)
	d.Client()
	program := e2e.Program(t, e2e.Repository(t), "./test/e2e/web/testdata/noisy")
	dir := t.TempDir()
	e2e.CopyProgram(t, program, dir, "noisy")
	hostile := hostileFiles(t, dir)
	d.Push(dir, fmt.Sprintf(manifest, "noisy", "port", ""))
	for _, file := range hostile {
		_ = os.Remove(file)
	}
	d.Push(dir, fmt.Sprintf(manifest, "quiet", "port", ""))
	if err := os.WriteFile(filepath.Join(dir, "manifest.yml"), fmt.Appendf(nil, manifest, "crasher", "process", `, CRASH: "1"`), 0o600); err != nil {
		t.Fatal(err)
	}
	// It may crash before the client saw it run: then the push fails.
	_, _ = d.Run("push", dir)
	config := e2e.Doc{"port": d.Addr[len("127.0.0.1:"):], "admin": e2e.AdminPassword, "password": password, "modules": modules, "program": dir,
		"apps": e2e.Doc{"noisy": d.App("noisy"), "quiet": d.App("quiet"), "crasher": d.App("crasher")}, "folder": e2e.Example(t, "static"), "scratch": t.TempDir()}
	space := d.First("/v3/spaces?names=dev")
	config["space"] = space
	nothing := t.TempDir()
	if err := os.WriteFile(filepath.Join(nothing, "notes.txt"), []byte("no buildpack knows this\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config["nothing"] = nothing
	org := d.First("/v3/organizations?names=cupola")
	config["org"] = org
	for _, role := range []string{"space_developer", "space_supporter", "space_auditor", "space_manager"} {
		user := addUser(d, role)
		addRole(d, user, "organization_user", "organization", org)
		addRole(d, user, role, "space", space)
	}
	for _, role := range []string{"organization_manager", "organization_auditor", "organization_billing_manager"} {
		addRole(d, addUser(d, role), role, "organization", org)
	}
	addReaders(d)
	drive(t, config, func(t *testing.T, ask string) {
		switch ask { // the browser's side cannot do this
		case "kill":
			d.Kill()
		case "start":
			d.Start()
		case "push hostile":
			pushHostile(t, d, program)
		default:
			t.Errorf("the browser's side asks for %q", ask)
		}
	})
}

// hostileStrings are texts that try to be more than text.
func hostileStrings(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "hostile.json"))
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil || len(all) != 200 {
		t.Fatalf("got %d strings, %v; want 200", len(all), err)
	}
	return all
}

// hostileFiles makes files with such names.
func hostileFiles(t *testing.T, dir string) (paths []string) {
	t.Helper()
	for _, s := range hostileStrings(t) {
		path := filepath.Join(dir, strings.ReplaceAll(s, "/", "_"))
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// pushHostile pushes an app whose buildpack prints the hostile strings, and whose ten
// instances print 20 of them each before they crash.
func pushHostile(t *testing.T, d *e2e.Daemon, program string) {
	t.Helper()
	all := hostileStrings(t)
	d.AddBuildpack("hostile", map[string]string{
		"bin/compile": "#!/bin/sh\ncat \"$1/strings\"\n",
		"bin/release": "#!/bin/sh\necho 'default_process_types: {web: ./noisy}'\n",
	})
	dir := t.TempDir()
	e2e.CopyProgram(t, program, dir, "noisy")
	var last []string
	for some := range slices.Chunk(all, 20) {
		last = append(last, strings.Join(some, " · "))
	}
	for name, text := range map[string]string{
		"strings": strings.Join(all, "\n") + "\n", "last": strings.Join(last, "\n"),
		"manifest.yml": `applications:
- {name: hostile, stack: minifs, buildpacks: [hostile], instances: 10, memory: 32M, disk_quota: 64M, health-check-type: process, no-route: true, env: {CRASH: last}}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = d.Run("push", dir) // it fails when it sees the app crash
}

// addUser makes a user, named as the role that it gets.
func addUser(d *e2e.Daemon, role string) (guid string) {
	d.T.Helper()
	var user struct{ ID string }
	d.API("POST", "/Users", e2e.Doc{"userName": role, "password": password, "emails": []e2e.Doc{{"value": role}}}, &user)
	d.API("POST", "/v3/users", e2e.Doc{"guid": user.ID}, nil)
	return user.ID
}

// addReaders makes a read-only admin and a global auditor, named as their groups.
func addReaders(d *e2e.Daemon) {
	d.T.Helper()
	for _, name := range []string{"admin_read_only", "global_auditor"} {
		var groups struct{ Resources []struct{ ID string } }
		d.API("GET", "/Groups?filter="+url.QueryEscape(`displayName eq "cloud_controller.`+name+`"`), nil, &groups)
		d.API("POST", "/Groups/"+groups.Resources[0].ID+"/members", e2e.Doc{"origin": "uaa", "type": "USER", "value": addUser(d, name)}, nil)
	}
}

// addRole gives a user a role in an organization or a space.
func addRole(d *e2e.Daemon, user, role, kind, guid string) {
	d.T.Helper()
	d.API("POST", "/v3/roles", e2e.Doc{"type": role, "relationships": e2e.Doc{"user": e2e.ToOne(user), kind: e2e.ToOne(guid)}}, nil)
}

// needBrowser skips a test where no browser can be driven, and installs
// playwright-core and axe-core where they are not yet: it returns their directory.
func needBrowser(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"chromium", "node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s: run .ci/deps test", program)
		}
	}
	dir, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// installed is install, once for all tests that begin at the same time.
var installed = sync.OnceValues(install)

func install() (dir string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	lock, err := os.ReadFile("package-lock.json")
	if err != nil {
		return "", err
	}
	dir = filepath.Join(cache, "cupola", "console-tests")
	if old, err := os.ReadFile(filepath.Join(dir, "package-lock.json")); err == nil && string(old) == string(lock) {
		if _, err := os.Stat(filepath.Join(dir, "node_modules", "playwright-core")); err == nil {
			return dir, nil
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
		}
		if err != nil {
			return "", err
		}
	}
	npm := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = dir
	if out, err := npm.CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir)
		return "", fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return dir, nil
}

// message is what the browser's side says: how a test ended, or what it asks for.
type message struct {
	Test, Error, Ask string
	Millis           int
}

// drive runs browser/run.mjs, and reports each of its tests. answer does what the
// browser's side asks for.
func drive(t *testing.T, config e2e.Doc, answer func(t *testing.T, ask string)) {
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	node := exec.Command("node", filepath.Join("browser", "run.mjs"))
	node.Env = append(os.Environ(), "CONSOLE_TEST="+string(text), "TMPDIR="+t.TempDir())
	node.Stderr = os.Stderr
	answers, err := node.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	tests := 0
	for lines := bufio.NewScanner(said); lines.Scan(); {
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Log(lines.Text())
			continue
		}
		if m.Ask != "" {
			answer(t, m.Ask)
			fmt.Fprintln(answers, "done")
			continue
		}
		tests++
		t.Run(m.Test, func(t *testing.T) {
			t.Logf("%d ms", m.Millis)
			if m.Error != "" {
				t.Error(m.Error)
			}
		})
	}
	if err := node.Wait(); err != nil || tests == 0 && os.Getenv("ONLY") == "" {
		t.Errorf("node: %v after %d tests", err, tests)
	}
}
