package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// runHere runs a command that needs no daemon, in this process.
func runHere(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var files [2]*os.File
	for i := range files {
		f, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	code = run(args, files[0], files[1])
	text := func(f *os.File) string {
		b, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	return code, text(files[0]), text(files[1])
}

// boshFiles are a deployment's files in a directory that becomes the working one.
func boshFiles(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"manifest.yml": `name: ((name))
director_uuid: x
releases:
- {name: r, version: latest, url: registry.example.com/org, stemcell: {os: jammy, version: "1"}}
instance_groups:
- name: g
  azs: [z1]
  instances: 2
  jobs: [{name: j, release: r, properties: {a: ((one)), b: ((file)), c: ((env)), d: ((two))}}]
`,
		"version.yml":  "- {type: replace, path: /releases/name=r/version, value: '5'}\n",
		"director.yml": "- {type: remove, path: /director_uuid}\n",
		"vars.yml":     "one: 1\ntwo: from a file\nname: from a file\nover: 1\n",
		"text":         "a\nb\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("MINE_env", "[1]")
}

var boshVariables = []string{"-l", "vars.yml", "--var-file", "file=text", "--vars-env", "MINE", "-v", "name=dep", "-v", "two=2"}

func TestDeploymentLint(t *testing.T) {
	boshFiles(t)
	args := append([]string{"deployment", "lint", "-f", "manifest.yml"}, boshVariables...)
	code, stdout, stderr := runHere(t, args...)
	if diff := cmp.Diff(`error   /releases/name=r: release version "latest" is not supported; give the version that the image was built from (line 4)
warning /director_uuid: not used (line 2)
`, stderr); diff != "" || code != 1 {
		t.Errorf("exit code %d, standard error (-want +got):\n%s", code, diff)
	}
	if want := "info    /instance_groups/name=g: 2 instances x 1 AZ = 2 (line 6)\nmanifest.yml: 1 error, 1 warning\n"; stdout != want {
		t.Errorf("got %s; want %s", stdout, want)
	}
	code, stdout, stderr = runHere(t, append(args, "-o", "version.yml", "-o", "director.yml")...)
	if code != 0 || stderr != "" || !strings.HasSuffix(stdout, "manifest.yml: 0 errors, 0 warnings\n") {
		t.Errorf("with ops: got %d, %s, %s", code, stdout, stderr)
	}
	code, stdout, _ = runHere(t, append(args, "--json")...)
	if code != 1 || !strings.Contains(stdout, `"level": "error"`) || !strings.Contains(stdout, `"path": "/releases/name=r"`) {
		t.Errorf("as JSON: got %d, %s", code, stdout)
	}
	if code, _, stderr = runHere(t, "deployment", "lint", "-f", "gone.yml"); code != 1 || !strings.Contains(stderr, "gone.yml") {
		t.Errorf("without a manifest: got %d, %s", code, stderr)
	}
}

func TestDeploymentInterpolate(t *testing.T) {
	boshFiles(t)
	int := append([]string{"deployment", "int", "-f", "manifest.yml"}, boshVariables...)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--path", "/name"}, "dep\n"},
		{[]string{"--path", "/instance_groups/name=g/jobs/0/properties"}, "{a: 1, b: \"a\\nb\\n\", c: [1], d: 2}\n"},
		{[]string{"--path", "/releases/0/version", "-o", "version.yml"}, "5\n"},
	} {
		if code, stdout, stderr := runHere(t, append(int, c.args...)...); code != 0 || stdout != c.want {
			t.Errorf("%v: got %d, %s%s; want %s", c.args, code, stdout, stderr, c.want)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{append(int, "--var-errs-unused"), "cupola: Expected to use variables: over\n"},
		{[]string{"deployment", "int", "-f", "manifest.yml", "--var-errs"}, "cupola: Expected to find variables: env, file, name, one, two\n"},
		{append(int, "--path", "/gone"), "cupola: --path /gone: Expected to find a map key 'gone' for path '/gone' (found map keys: 'director_uuid', 'instance_groups', 'name', 'releases')\n"},
		{append(int, "-v", "x"), "cupola: --var: expected NAME=VALUE\n"},
	} {
		if code, stdout, stderr := runHere(t, c.args...); code != 1 || stdout != "" || stderr != c.want {
			t.Errorf("%v: got %d, %s%s; want %s", c.args, code, stdout, stderr, c.want)
		}
	}
}
