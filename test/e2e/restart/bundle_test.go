package restart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

// planted is in every secret of the test. Its slash is another character in URLs, and its
// two halves are looked for, too.
const planted = "Plant3d/S3cret"

// forms are what planted looks like in a file, at any place of base64.
func forms() (all []string) {
	for _, text := range append(strings.Split(planted, "/"), planted, url.QueryEscape(planted)) {
		all = append(all, text, hex.EncodeToString([]byte(text)))
		for shift := range 3 {
			code := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + text))
			all = append(all, code[[]int{0, 2, 3}[shift]:len(code)-2]) // characters that others share
		}
	}
	return all
}

// unpacked reads a bundle, by the names of its files. Compressed ones are unpacked, too.
func unpackedBundle(t *testing.T, file string) map[string]string {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("got %v, %v; want a file of mode 0600", info, err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if inner, err := gzip.NewReader(bytes.NewReader(text)); err == nil {
			if text, err = io.ReadAll(inner); err != nil {
				t.Fatal(err)
			}
		}
		_, name, _ := strings.Cut(h.Name, "/")
		all[name] = string(text)
	}
}

// plant puts secrets wherever users and operators can put them.
func plant(t *testing.T, d *e2e.Daemon) {
	t.Helper()
	broker := listenAt(t, "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != planted {
			http.Error(w, planted, http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"services": [{"id": "s", "name": "mine", "description": "d", "bindable": true, "plans": [{"id": "p", "name": "small", "description": "d", "free": true}]}]}`)
	}))
	space := e2e.Doc{"space": e2e.ToOne(d.First("/v3/spaces?names=dev"))}
	dir := t.TempDir()
	e2e.WriteManifest(t, dir, e2e.Doc{"name": "app", "memory": "32M", "disk_quota": "64M", "stack": "host", "no-route": true, "health-check-type": "process", "buildpacks": []string{"binary_buildpack"},
		"command": "echo $SECRET; sleep 1; exit 7", "env": e2e.Doc{"SECRET": planted}})
	if err := os.WriteFile(filepath.Join(dir, "run"), []byte(planted), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _ = d.Run("push", dir) // it crashes, which an alert tells
	var own struct{ GUID string }
	d.API("POST", "/v3/service_instances", e2e.Doc{"type": "user-provided", "name": "own", "credentials": e2e.Doc{"password": planted},
		"syslog_drain_url": "https://me:" + url.QueryEscape(planted) + "@127.0.0.1:1/" + planted + "?token=" + planted, "relationships": space}, &own)
	d.Bind("app", own.GUID)
	d.API("POST", "/v3/service_brokers", e2e.Doc{"name": "b", "url": "http://" + broker, "authentication": e2e.Doc{"type": "basic", "credentials": e2e.Doc{"username": "u", "password": planted}}}, nil)
	d.API("POST", "/v3/service_brokers", e2e.Doc{"name": "refused", "url": "http://" + broker, "authentication": e2e.Doc{"type": "basic", "credentials": e2e.Doc{"username": "u", "password": planted + "no"}}}, nil)
	e2e.WriteManifest(t, dir, e2e.Doc{"name": "by-url", "memory": "32M", "stack": "host", "no-route": true, "buildpacks": []string{"https://me:" + url.QueryEscape(planted) + "@127.0.0.1:1/pack.zip?token=" + planted}})
	_, _ = d.Run("push", dir) // nothing answers there
	d.Flag("diego_docker", true)
	d.PushDocker(t, "image", "127.0.0.1:1/image:1", planted)
	must(d, "alerts", "add-target", "hook", "--webhook", "http://127.0.0.1:1/"+planted)
	_, _ = d.Run("alerts", "test", "hook")
	config := filepath.Join(dir, "config.yml")
	if err := os.WriteFile(config, []byte("releases: []\naddons:\n- name: a\n  jobs: []\n  properties: {password: "+planted+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	must(d, "deployment", "update-config", "--type", "runtime", config)
	_, _, _ = d.Get("app.localhost", "/"+planted+"?token="+planted)
	d.Logged("app", planted)
}

// secrets are the contents of the files that hold keys, and what the test planted.
func secrets(t *testing.T, d *e2e.Daemon) []string {
	t.Helper()
	all := append(forms(), e2e.AdminPassword, d.Client().Token, "PRIVATE KEY-----")
	files, err := filepath.Glob(filepath.Join(d.Dir, "db", "*"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range append(files, filepath.Join(d.Dir, "ssh_host_key")) {
		if ext := filepath.Ext(file); ext != ".key" && ext != ".password" && !strings.Contains(filepath.Base(file), "password") && !strings.HasSuffix(file, "ssh_host_key") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			continue // there is no cf ssh
		}
		found++
		all = append(all, hex.EncodeToString(text[:min(16, len(text))]), base64.StdEncoding.EncodeToString(text[:min(15, len(text))]))
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); len(line) >= 12 {
				all = append(all, line)
			}
		}
	}
	if found < 2 {
		t.Errorf("got %d files with keys of %v", found, files)
	}
	return all
}

// TestSupportBundle plants a secret in every place that can hold one. No bundle has it:
// with a daemon, without one, and with a database that does not open.
func TestSupportBundle(t *testing.T) {
	t.Parallel()
	credentials := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(credentials, []byte(planted+" "+planted+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := exec.Command(e2e.NeedBinary(t), "backups", "key", filepath.Join(t.TempDir(), "key")).Output()
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(made))
	recipient := words[slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "age1") })]
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--allow-loopback", "--alert-command", "false "+planted, "--backup-to", "s3://127.0.0.1:1/bucket/p?credentials="+credentials,
		"--backup-recipient", recipient, "--metrics", "127.0.0.1:0")
	plant(t, d)
	_, _ = d.Run("backups", "run", "--data-dir", d.Dir) // nothing answers there
	hidden := secrets(t, d)
	e2e.Eventually(t, time.Minute, func() string {
		if out := must(d, "alerts", "list", "--all"); !strings.Contains(out, crashing) {
			return out
		}
		return ""
	})
	bundle := func(name string, want ...string) map[string]string {
		t.Helper()
		file := filepath.Join(t.TempDir(), name+".tar.gz")
		out := must(d, "support-bundle", "--data-dir", d.Dir, "--output", file)
		files := unpackedBundle(t, file)
		for _, w := range want {
			if len(files[w]) == 0 || !strings.Contains(files["README.txt"], w) {
				t.Errorf("%s: %s is missing, or not in the README: %s", name, w, out)
			}
		}
		for file, text := range files {
			for _, secret := range hidden {
				if strings.Contains(text, secret) {
					at := strings.Index(text, secret)
					t.Errorf("%s: %s has the secret %s: …%s…", name, file, secret, text[max(0, at-80):min(len(text), at+80)])
				}
			}
		}
		return files
	}
	full := bundle("with a daemon", "version.json", "config.json", "status.json", "log.jsonl", "process.txt", "goroutines.txt", "heap.pprof", "doctor.json", "rows.json", "disk.json", "alerts.json", "kernel.txt")
	for file, part := range map[string]string{"config.json": `"admin-password": "(set, not shown)"`, "rows.json": `"apps": 3`, "disk.json": `"packages"`, "alerts.json": crashing, "log.jsonl": `"level"`,
		"goroutines.txt": "goroutine ", "doctor.json": `"level"`, "status.json": `"total_bytes"`, "kernel.txt": "MemTotal", "process.txt": "VmRSS"} {
		if !strings.Contains(full[file], part) {
			t.Errorf("%s does not have %q:\n%s", file, part, full[file][:min(2000, len(full[file]))])
		}
	}
	if full["errors.txt"] != "" {
		t.Errorf("parts failed:\n%s", full["errors.txt"])
	}
	d.Kill()
	bundle("without a daemon", "rows.json", "disk.json", "alerts.json", "kernel.txt", "doctor.json")
	database := filepath.Join(d.Dir, "db", "cupola.db")
	whole, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(database, bytes.Repeat([]byte("broken"), 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := bundle("without a database", "daemon-error.txt", "kernel.txt", "doctor.json")
	if slices.Contains(strings.Fields(broken["README.txt"]), "rows.json") {
		t.Error("there are rows of a broken database")
	}
	if err := os.WriteFile(database, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	d.Start()
}
