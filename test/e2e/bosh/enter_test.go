package bosh

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// entered runs commands in the instances, and copies files from and to them.
func (b *boshDaemon) entered(t *testing.T) {
	t.Helper()
	var views []struct {
		GUID, Group string
		Index       int
		Processes   []struct{ GUID string }
	}
	b.API("GET", "/v1/deployments/nats-deployment/instances", nil, &views)
	nats := "nats/" + views[0].GUID

	out := b.must(b.Run("deployment", "ssh", "nats-deployment", "nats", "-c", "echo hello; echo oops >&2"))
	for _, want := range []string{"nats/0: stdout | hello\n", "nats/1: stdout | hello\n", "nats/1: stderr | oops\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("got %s; want %q", out, want)
		}
	}
	out, err := b.Run("deployment", "ssh", "nats-deployment", nats, "--process", "nats/server", "-c", "exit 7")
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 7 {
		t.Errorf("got %v\n%s\nwant the command's exit code", err, out)
	}
	var results []struct {
		Instance, Stdout string
		ExitCode         int `json:"exit_code"`
	}
	out = b.must(b.Run("deployment", "ssh", "nats-deployment", "nats", "-c", "cat /etc/group", "--json"))
	if err := json.Unmarshal([]byte(out), &results); err != nil || len(results) != 2 || results[1].Instance != "nats/1" || results[1].Stdout != "root:x:0:\nvcap:x:1000:\n" {
		t.Errorf("got %v, %s; want the file of both", err, out)
	}
	for want, args := range map[string][]string{
		"interactive ssh is for one instance, and 2 match":          {"nats"},
		`deployment nats-deployment has no instance "nats/2"`:       {"nats/2"},
		`nats/0 has no running process "other"`:                     {"nats/0", "-c", "true", "--process", "other"},
		"--results and --json need --command":                       {"nats/0", "-r"},
		"setup/0 has no running process":                            {"setup", "-c", "true"},
		`invalid instance "nats/": give an instance group, or an i`: {"nats/"},
	} {
		if out, err := b.Run(append([]string{"deployment", "ssh", "nats-deployment"}, args...)...); err == nil || !strings.Contains(out, want) {
			t.Errorf("ssh %v: got %v\n%s\nwant %s", args, err, out, want)
		}
	}
	b.copied(t, nats)
	b.logFiles(t)
	_, err = ssh.Dial("tcp", b.SSHAddress(), &ssh.ClientConfig{User: "bosh:" + views[0].Processes[0].GUID + "/0", Auth: []ssh.AuthMethod{ssh.Password("no code")},
		HostKeyCallback: ssh.InsecureIgnoreHostKey()}) //nolint:gosec // of this test's daemon
	if err == nil {
		t.Error("a wrong code lets a user in")
	}
	b.wantLine("SSH] Successful remote access by ")
	contains(t, b.must(b.Run("deployment", "events", "--action", "setup ssh", "--instance", nats)), "admin", "nats-deployment")
}

// copied copies directories to an instance and back.
func (b *boshDaemon) copied(t *testing.T, instance string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "up", "deep", "file")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("some bytes"), 0o640); err != nil {
		t.Fatal(err)
	}
	scp := func(args ...string) (string, error) {
		return b.Run(append([]string{"deployment", "scp", "nats-deployment"}, args...)...)
	}
	b.must(scp("-r", filepath.Join(dir, "up"), instance+":/tmp"))
	b.must(scp("-r", instance+":/tmp/up", filepath.Join(dir, "down")))
	text, err := os.ReadFile(filepath.Join(dir, "down", "deep", "file"))
	if err != nil || string(text) != "some bytes" {
		t.Errorf("got %q, %v back", text, err)
	}
	b.must(scp("nats:/var/vcap/jobs/nats/config/nats.conf", filepath.Join(dir, "of-((instance_id))", "nats.conf")))
	if found, err := filepath.Glob(filepath.Join(dir, "of-*", "nats.conf")); err != nil || len(found) != 2 {
		t.Errorf("got %v, %v; want a file of each instance", found, err)
	}
	for want, args := range map[string][]string{
		"is a directory: give -r":                {instance + ":/tmp/up", dir},
		"2 instances match nats: give one, or a": {"nats:/tmp/x", dir},
		"and the other a local path":             {file, dir},
		"/tmp/none: file does not exist":         {instance + ":/tmp/none", dir},
		"read-only file system":                  {file, instance + ":/var/vcap/jobs/nats/x"},
	} {
		if out, err := scp(args...); err == nil || !strings.Contains(out, want) {
			t.Errorf("scp %v: got %v\n%s\nwant %s", args, err, out, want)
		}
	}
}

// logFiles downloads log files, and chooses lines of the log.
func (b *boshDaemon) logFiles(t *testing.T) {
	t.Helper()
	b.must(b.Run("deployment", "ssh", "nats-deployment", "nats", "-c", "echo line > /var/vcap/sys/log/nats/extra.log; echo other > /var/vcap/sys/log/nats/extra.txt"))
	dir := filepath.Join(t.TempDir(), "logs")
	b.must(b.Run("deployment", "logs", "nats-deployment", "--dir", dir, "--only", "nats/*.log"))
	found, err := filepath.Glob(filepath.Join(dir, "nats-deployment.nats.?-*.tgz"))
	if err != nil || len(found) != 2 {
		t.Fatalf("got %v, %v; want an archive of each instance", found, err)
	}
	if got := archived(t, found[0])["./nats/extra.log"]; got != "line\n" {
		t.Errorf("got %q; want what was written", got)
	}
	if got, ok := archived(t, found[1])["./nats/extra.txt"]; ok {
		t.Errorf("got %q of a file that is not wanted", got)
	}
	out := b.must(b.Run("deployment", "logs", "nats-deployment", "nats/1", "--job", "nats", "--num", "1"))
	if strings.Count(out, "\n") != 1 || !strings.Contains(out, "[nats/1 ") {
		t.Errorf("got %s; want the last line of nats/1", out)
	}
}

// archived are the files of an archive.
func archived(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for all := tar.NewReader(zipped); ; {
		h, err := all.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(all)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(text)
	}
}
