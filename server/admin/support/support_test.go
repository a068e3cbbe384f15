package support

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
)

func TestScrub(t *testing.T) {
	for text, want := range map[string]string{
		`dial https://me:hush@host:1/x?y=hush: refused`:                      `dial https://***@host:1/*** refused`,
		`sftp://hush@host/backups?key=/hush`:                                 `sftp://***@host/backups?***`,
		`post "https://hooks.example.com/services/T1/hush": 404`:             `post "https://hooks.example.com/***": 404`,
		`{"err":"authorization: Bearer hushhush.hush"}`:                      `{"err":"authorization: Bearer ***"}`,
		`password=hush token: "hush" {"api_key":"hush"}`:                     `password=*** token: "***" {"api_key":"***"}`,
		"-----BEGIN EC PRIVATE KEY-----\nhush\n-----END EC PRIVATE KEY-----": `***`,
		"-----BEGIN PRIVATE KEY-----\nhush":                                  `***`,
		`GET http://127.0.0.1:8080 took 5 ms`:                                `GET http://127.0.0.1:8080 took 5 ms`,
	} {
		if got := string(scrub([]byte(text))); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// FuzzScrub holds that no user, password or query of a URL is left, whatever is around
// it.
func FuzzScrub(f *testing.F) {
	f.Add("failed: ", "/path", " (twice)")
	f.Add(`{"url":"`, "", `"}`)
	f.Fuzz(func(t *testing.T, before, path, after string) {
		if strings.Contains(before+path+after, "hush") || strings.ContainsAny(path, " \t\r\n\f\v\"'\\@?") {
			t.Skip()
		}
		text := before + "x://hush:hush@host/" + path + "?hush" + " " + after
		if got := string(scrub([]byte(text))); strings.Contains(got, "hush") {
			t.Errorf("%q became %q", text, got)
		}
	})
}

func TestLogKeepsTheLastLines(t *testing.T) {
	l := &Log{}
	var out strings.Builder
	log := slog.New(l.Handler(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn}))).With("part", "x")
	for n := range maxLines + 5 {
		log.Info("line", "n", n)
	}
	log.Debug("too little")
	log.WithGroup("g").Warn("last", "text", strings.Repeat("x", 2*maxLine))
	lines := strings.Split(strings.TrimSuffix(string(l.Text()), "\n"), "\n")
	if len(lines) != maxLines || !strings.Contains(lines[0], `"n":6}`) || !strings.Contains(lines[0], `"part":"x","n"`) || !strings.HasSuffix(lines[maxLines-1], "xxx…") {
		t.Errorf("got %d lines, the first %s, the last %s", len(lines), lines[0], lines[len(lines)-1])
	}
	if n := strings.Count(out.String(), "\n"); n != 1 || !strings.Contains(out.String(), "last") {
		t.Errorf("the other handler got %d lines; want the warning alone", n)
	}
}

// TestPartsThatHang holds that what panics or hangs costs only itself.
func TestPartsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan bool)
		for name, make := range map[string]func(context.Context) ([]byte, error){
			"longer than": func(context.Context) ([]byte, error) { <-hang; return nil, nil },
			"lost":        func(context.Context) ([]byte, error) { panic("lost") },
			"broken":      func(context.Context) ([]byte, error) { return nil, errors.New("broken") },
		} {
			if _, err := within(t.Context(), part{name, make}); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v; want %q", err, name)
			}
		}
		close(hang)
	})
}

func TestEveryFileIsExplained(t *testing.T) {
	s := &Source{Log: &Log{}}
	for _, p := range s.parts() {
		if about[p.name] == "" {
			t.Errorf("the README does not explain %s", p.name)
		}
	}
}
