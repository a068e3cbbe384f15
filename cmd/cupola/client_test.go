package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogInFails says what a user can do about it.
func TestLogInFails(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hello</html>") })
	stranger, secure, gone := httptest.NewServer(page), httptest.NewUnstartedServer(page), httptest.NewServer(page)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that do not trust it
	secure.StartTLS()
	defer stranger.Close()
	defer secure.Close()
	gone.Close()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error": "unauthorized", "error_description": "Bad credentials"}`)
	}))
	defer refusing.Close()
	nowhere := daemonFlags{DataDir: filepath.Join(t.TempDir(), "none")}
	for _, c := range []struct {
		flags apiFlags
		want  string
	}{
		{apiFlags{API: gone.URL, User: "admin", Password: "p"}, "nothing listens at " + gone.URL + ": start a daemon with 'sudo cupola serve', or give its API URL with --api"},
		{apiFlags{API: stranger.URL, User: "admin", Password: "p"}, stranger.URL + " is not cupola's API: give its URL with --api"},
		{apiFlags{API: secure.URL, User: "admin", Password: "p"}, "this machine does not trust the certificate of " + secure.URL + ": trust the daemon's CA with SSL_CERT_FILE=<data-dir>/ca.pem"},
		{apiFlags{API: refusing.URL, User: "joe", Password: "p"}, "log in as joe at " + refusing.URL + ": Bad credentials"},
		{apiFlags{API: "localhost:8080", User: "admin", Password: "p"}, `invalid --api "localhost:8080": give a URL like http://localhost:8080`},
		{apiFlags{API: gone.URL, User: "joe"}, "no password for joe: give --password or CUPOLA_PASSWORD"},
		{apiFlags{API: gone.URL, User: "admin", daemonFlags: nowhere}, "no password: " + nowhere.DataDir + " has no daemon yet; start one with 'sudo cupola serve', or give --data-dir or --password"},
		{apiFlags{User: "admin", Password: "p", daemonFlags: nowhere}, nowhere.DataDir + " has no daemon yet: start one with 'sudo cupola serve --data-dir " + nowhere.DataDir + "', or give its API URL with --api"},
	} {
		_, err := c.flags.login(context.Background())
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// ran runs a command line, and gives the exit code and what was printed.
func ran(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	var files [2]*os.File
	for i := range files {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	code = run(args, files[0], files[1])
	var text [2]string
	for i, f := range files {
		b, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		text[i] = string(b)
	}
	return code, text[0], text[1]
}

// TestWrongCommandLines are answered with the help that helps.
func TestWrongCommandLines(t *testing.T) {
	for _, c := range []struct{ line, help string }{
		{"--no-such-flag", "--help"},
		{"serv", "--help"},
		{"serve --htpp :1", "serve --help"},
		{"stack pull", "stack pull --help"},
		{"stack pul x", "stack --help"},
		{"deployment lint", "deployment lint --help"},
		{"simulate --cells many", "simulate --help"},
	} {
		code, out, said := ran(t, strings.Fields(c.line)...)
		if code != 2 || out != "" || !strings.HasPrefix(said, "cupola: ") || !strings.HasSuffix(said, "\nTry 'cupola "+c.help+"'.\n") {
			t.Errorf("%s: got code %d, %q, %q; want 2 and %s", c.line, code, out, said, c.help)
		}
	}
}

func TestCalledAs(t *testing.T) {
	dir := t.TempDir()
	program, link := filepath.Join(dir, "cupola"), filepath.Join(dir, "path", "cupola")
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(link))
	check := func(arg0, want string) {
		t.Helper()
		if got := calledAs(arg0); got != want {
			t.Errorf("%s: got %s; want %s", arg0, got, want)
		}
	}
	check("cupola", "cupola")
	check("/tmp/cupola.test", "cupola")
	check(program, program)
	if err := os.Mkdir(filepath.Dir(link), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(program, link); err != nil {
		t.Fatal(err)
	}
	check(program, "cupola") // it is in the PATH
	got := (&env{program: "bin/cupola"}).called("cupola: run 'cupola serve' or sudo cupola doctor; see docs/cupola.md")
	if want := "cupola: run 'bin/cupola serve' or sudo bin/cupola doctor; see docs/cupola.md"; got != want {
		t.Errorf("got %s; want %s", got, want)
	}
}
