package images

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"cupola/test/e2e"
)

// debianRegistry is a configuration of Debian's docker-registry.
const debianRegistry = `version: 0.1
log: {level: info, formatter: text}
storage:
  filesystem: {rootdirectory: %[1]s}
  delete: {enabled: true}
http:
  addr: 127.0.0.1:0
  tls: {certificate: %[2]s, key: %[3]s}
auth:
  htpasswd: {realm: images, path: %[4]s}
`

var listening = regexp.MustCompile(`listening on (127\.0\.0\.1:\d+), tls`)

// startDebianRegistry starts the registry that Debian has. It tells of each
// request by a line of its access log.
func startDebianRegistry(t *testing.T) *e2e.ImageRegistry {
	t.Helper()
	binary, err := exec.LookPath("docker-registry")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("needs docker-registry: apt-get install docker-registry")
	}
	if err != nil {
		t.Fatal(err)
	}
	dir, files := t.TempDir(), e2e.NewCertificate(t)
	hash, err := bcrypt.GenerateFromPassword([]byte(e2e.RegistryPassword), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	users, config := filepath.Join(dir, "htpasswd"), filepath.Join(dir, "config.yml")
	for file, text := range map[string]string{
		users:  e2e.RegistryUser + ":" + string(hash) + "\n",
		config: fmt.Sprintf(debianRegistry, filepath.Join(dir, "data"), files.Cert, files.Key, users),
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := &e2e.ImageRegistry{CA: files.CA, Marks: make(chan struct{}, 8)}
	run(r, t, exec.Command(binary, "serve", config))
	return r
}

// run starts a registry, and waits until it listens.
func run(r *e2e.ImageRegistry, t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	err = cmd.Start()
	write.Close()
	if err != nil {
		t.Fatal(err)
	}
	said, ended := &e2e.LogBuffer{}, make(chan struct{})
	host := make(chan string, 1)
	go func() {
		defer close(ended)
		follow(r, io.TeeReader(read, said), host)
	}()
	r.Stop = func() {
		cmd.Process.Kill()
		<-ended // its last line, too, counts
		cmd.Wait()
	}
	t.Cleanup(r.Stop)
	select {
	case r.Host = <-host:
	case <-ended:
		t.Fatalf("docker-registry has ended:\n%s", said)
	case <-time.After(time.Minute):
		t.Fatalf("docker-registry does not listen:\n%s", said)
	}
}

// follow reads what the registry says.
func follow(r *e2e.ImageRegistry, from io.Reader, host chan<- string) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			host <- m[1]
		}
		switch line := lines.Text(); {
		case !strings.Contains(line, " HTTP/"): // not of the access log
		case strings.Contains(line, e2e.Mark):
			r.Marks <- struct{}{}
		default:
			r.Requests.Add(1)
		}
	}
}
