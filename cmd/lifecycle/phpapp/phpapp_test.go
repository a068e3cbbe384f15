package phpapp

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestExpand(t *testing.T) {
	t.Setenv("PORT", "8080")
	t.Setenv("HOME", "/home/vcap/app")
	for text, want := range map[string]string{
		"listen ${PORT};": "listen 8080;", "root @{HOME}/@{PORT};": "root /home/vcap/app/8080;", "$uri ${NO_SUCH} @{NO}": "$uri ${NO_SUCH} @{NO}", "^(.*)[^/]$": "^(.*)[^/]$", "${PORT": "${PORT", "a@b $": "a@b $",
		"$${PORT}": "$8080",
	} {
		if got := expand(text); got != want {
			t.Errorf("%q: got %q; want %q", text, got, want)
		}
	}
}

func TestPrepare(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for _, name := range []string{"WEBDIR", socketVariable, configVariable} {
		t.Setenv(name, "")
	}
	config := filepath.Join(dir, "config")
	if err := os.MkdirAll(filepath.Join(config, "extra"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(config, "extra", "a.conf"), []byte("root @{WEBDIR}; unix:@{PHP_FPM_LISTEN};"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/modules", filepath.Join(config, "modules")); err != nil {
		t.Fatal(err)
	}
	a := App{Config: config, WebDir: "htdocs"}
	for range 2 { // a container may start it again
		if err := a.prepare(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.Join(dir, "server", "extra", "a.conf"))
	if want := "root htdocs; unix:" + dir + "/php-fpm.sock;"; err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if target, err := os.Readlink(filepath.Join(dir, "server", "modules")); err != nil || target != "/modules" {
		t.Errorf("got %q, %v; want the link", target, err)
	}
}

// listen makes the socket that the second program waits for.
func listen(t *testing.T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	t.Setenv(socketVariable, path)
}

// The app ends with the first of its programs, and never with success unless it was asked to end.
func TestRun(t *testing.T) {
	listen(t)
	forever := []string{"/bin/sh", "-c", "exec sleep 100"}
	for code, programs := range map[int][][]string{3: {forever, {"/bin/sh", "-c", "exit 3"}}, 1: {{"/bin/sh", "-c", "exit 0"}, forever}} {
		if got := (App{Programs: programs}).run(t.Context()); got != code {
			t.Errorf("got %d; want %d", got, code)
		}
	}
	if got := (App{Programs: [][]string{forever, {"/no/such/program"}}}).run(t.Context()); got != 1 {
		t.Errorf("got %d; want 1 without the program", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := (App{Programs: [][]string{forever, forever}}).run(ctx); got != 0 {
		t.Errorf("got %d; want 0 after SIGTERM", got)
	}
}

// The web server starts when PHP listens, and not at all if PHP ends before.
func TestServerWaitsForPHP(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(socketVariable, filepath.Join(dir, "s"))
	started := filepath.Join(dir, "started")
	server := []string{"/bin/sh", "-c", "touch " + started + "; exit 4"}
	ended := make(chan int, 1)
	go func() {
		ended <- (App{Programs: [][]string{{"/bin/sh", "-c", "read x"}, {"/bin/sleep", "100"}}}).run(t.Context())
	}()
	if got := <-ended; got != 1 {
		t.Errorf("got %d; want 1, of PHP that ended", got)
	}
	running := make(chan int, 1)
	go func() { running <- (App{Programs: [][]string{{"/bin/sleep", "100"}, server}}).run(t.Context()) }()
	select {
	case <-running:
		t.Fatal("the server did not wait")
	case <-time.After(50 * time.Millisecond):
	}
	if _, err := os.Stat(started); err == nil {
		t.Error("the server was started before PHP listened")
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := <-running; got != 4 {
		t.Errorf("got %d; want 4, of the server", got)
	}
}
