package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"cupola/runtime/contract"
)

// staging is a directory laid out like /tmp of a staging container.
type staging struct {
	t   *testing.T
	dir string
}

// newStaging writes the app's files; names ending in * are executable.
func newStaging(t *testing.T, app map[string]string) *staging {
	t.Helper()
	s := &staging{t: t, dir: t.TempDir()}
	if err := os.MkdirAll(s.path("app"), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, s.path("app"), app)
	return s
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		mode := os.FileMode(0o644)
		if n, ok := strings.CutSuffix(name, "*"); ok {
			name, mode = n, 0o755
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *staging) path(name string) string { return filepath.Join(s.dir, name) }

// addBuildpack installs a buildpack made of files under its key.
func (s *staging) addBuildpack(name string, files map[string]string) {
	s.t.Helper()
	writeFiles(s.t, filepath.Join(s.path("buildpacks"), contract.BuildpackDir(name)), files)
}

// addSystem installs all system buildpacks and returns their order.
func (s *staging) addSystem() string {
	s.t.Helper()
	var names []string
	for _, b := range contract.Buildpacks() {
		files := map[string]string{}
		for _, f := range b.Files(filepath.Join(programsDir, "lifecycle")) {
			if f.Mode&0o111 != 0 {
				f.Path += "*"
			}
			files[f.Path] = f.Text
		}
		s.addBuildpack(b.Name, files)
		names = append(names, b.Name)
	}
	return strings.Join(names, ",")
}

// build runs the builder and returns its exit code and all it printed.
func (s *staging) build(args ...string) (int, string) {
	s.t.Helper()
	all := []string{
		"-buildDir=" + s.path("app"), "-outputDroplet=" + s.path("droplet"), "-outputMetadata=" + s.path("result.json"),
		"-outputBuildArtifactsCache=" + s.path("output-cache"), "-buildpacksDir=" + s.path("buildpacks"),
		"-buildpacksDownloadDir=" + s.path("downloads"), "-buildArtifactsCacheDir=" + s.path("cache"),
	}
	cmd := exec.Command(filepath.Join(programsDir, "builder"), append(all, args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+s.dir, "CF_STACK=test")
	out, err := cmd.CombinedOutput()
	return exitCode(s.t, err), string(out)
}

// mustBuild stages, expects success and returns the log.
func (s *staging) mustBuild(args ...string) string {
	s.t.Helper()
	code, out := s.build(args...)
	if code != 0 {
		s.t.Fatalf("builder exited %d\n%s", code, out)
	}
	return out
}

func (s *staging) result() contract.Result {
	s.t.Helper()
	var r contract.Result
	text, err := os.ReadFile(s.path("result.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		s.t.Fatal(err)
	}
	return r
}

// unpack extracts the droplet as a container of the app has it and returns
// the home directory.
func (s *staging) unpack() string {
	s.t.Helper()
	home := filepath.Join(s.dir, "home")
	for h, body := range s.entries() {
		path := filepath.Join(home, h.Name)
		var err error
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o755)
		case tar.TypeSymlink:
			err = os.Symlink(h.Linkname, path)
		case tar.TypeLink:
			err = os.Link(filepath.Join(home, h.Linkname), path)
		default:
			err = os.WriteFile(path, body, os.FileMode(h.Mode))
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return home
}

// entries yields the droplet's entries in order.
func (s *staging) entries() func(yield func(*tar.Header, []byte) bool) {
	s.t.Helper()
	data, err := os.ReadFile(s.path("droplet"))
	if err != nil {
		s.t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		s.t.Fatal(err)
	}
	r := tar.NewReader(z)
	return func(yield func(*tar.Header, []byte) bool) {
		for {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				s.t.Fatal(err)
			}
			body, err := io.ReadAll(r)
			if err != nil {
				s.t.Fatal(err)
			}
			if !yield(h, body) {
				return
			}
		}
	}
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		t.Fatal(err)
	}
	return exit.ExitCode()
}
