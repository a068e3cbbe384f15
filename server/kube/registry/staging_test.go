package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// pretended is a staging that fails as it is told.
type pretended struct {
	file string
	err  error
	busy bool
	kept map[string]string
}

func (p *pretended) Begin() (func(), bool) { return func() {}, !p.busy }
func (p *pretended) Plan() ([]byte, error) { return []byte("{}"), p.err }
func (p *pretended) Input(source string) (*os.File, error) {
	if source != "blob:ab" {
		return nil, ErrNotNamed
	}
	return os.Open(p.file)
}

func (p *pretended) Output(_ context.Context, name string, body io.Reader) error {
	text, err := io.ReadAll(body)
	if p.kept[name] = string(text); err != nil {
		return err
	}
	return p.err
}

// TestStagings answers the stager of a staging alone, and says whether to ask again.
func TestStagings(t *testing.T) {
	r := open(t, newSource(t), t.TempDir(), "192.0.2.1:5443")
	file := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(file, []byte("an archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &pretended{file: file, kept: map[string]string{}}
	var unknown error
	r.Stagings = func(cell, guid string) (Staging, error) {
		if cell != "edge" || guid != "s-1" {
			return nil, ErrNoStaging
		}
		return s, unknown
	}
	if got := r.StagingURL("edge", "s-1"); got != "https://192.0.2.1:5443/staging/edge/s-1" {
		t.Errorf("got %s", got)
	}
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	ask := func(method, path, token, body string) string {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return fmt.Sprintf("%d %s", res.StatusCode, strings.TrimSpace(string(text)))
	}
	own := r.StagingToken("edge", "s-1")
	for name, token := range map[string]string{"none": "", "the cell's password": r.Password("edge"), "another staging's": r.StagingToken("edge", "s-2"), "another cell's": r.StagingToken("core", "s-1")} {
		if got := ask("GET", "/staging/edge/s-1/plan", token, ""); !strings.HasPrefix(got, "401 ") {
			t.Errorf("with %s: got %s", name, got)
		}
	}
	if got := ask("GET", "/v2/", own, ""); !strings.HasPrefix(got, "401 ") {
		t.Errorf("a stager may pull: got %s", got)
	}
	for _, c := range []struct {
		method, path string
		unknown, err error
		busy         bool
		want         string
	}{
		{"GET", "plan", nil, nil, false, "200 {}"},
		{"GET", "plan", nil, ErrNoStaging, false, "410 "},
		{"GET", "plan", ErrNotKnown, nil, false, "503 "},
		{"GET", "plan", ErrNoStaging, nil, false, "410 "},
		{"GET", "plan", nil, nil, true, "503 "},
		{"GET", "inputs/blob:ab", nil, nil, false, "200 an archive"},
		{"GET", "inputs/blob:cd", nil, nil, false, "404 the plan of the staging does not name it"},
		{"PUT", "outputs/droplet", nil, nil, false, "201"},
		{"PUT", "outputs/droplet", nil, ErrHas, false, "409 "},
		{"PUT", "outputs/droplet", nil, ErrTooLarge, false, "413 it is too large"},
		{"PUT", "outputs/droplet", nil, fmt.Errorf("write: %w", syscall.ENOSPC), false, "507 the disk of cupola is full"},
		{"PUT", "outputs/droplet", nil, errors.New("secret path"), false, "500 try again"},
		{"DELETE", "outputs/droplet", nil, nil, false, "405 "},
		{"GET", "else", nil, nil, false, "404 "},
	} {
		s.err, s.busy, unknown = c.err, c.busy, c.unknown
		if got := ask(c.method, "/staging/edge/s-1/"+c.path, own, "a droplet"); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %s: got %q; want %q", c.method, c.path, got, c.want)
		}
	}
	if s.kept["droplet"] != "a droplet" {
		t.Errorf("got %q", s.kept)
	}
}
