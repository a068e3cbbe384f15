package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// need skips where the machine lacks a language's toolchain.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("needs %s", p)
		}
	}
}

// serve stages the app with all system buildpacks, checks who took it, starts
// it and checks what it answers.
func serve(t *testing.T, s *staging, buildpack, want string) *app {
	t.Helper()
	log := s.mustBuild("-buildpackOrder=" + s.addSystem())
	if got := s.result().LifecycleMetadata.DetectedBuildpack; got != buildpack {
		t.Fatalf("got buildpack %q; want %q\n%s", got, buildpack, log)
	}
	a := start(t, s.unpack(), "")
	if code, body := a.get("/"); code != 200 || body != want {
		t.Errorf("got %d %q; want 200 %q\n%s\n%s", code, body, want, log, a.out.String())
	}
	return a
}

const goServer = `package main

import (
	"fmt"
	"net/http"
	"os"
%s)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, %s) })
	http.ListenAndServe(":"+os.Getenv("PORT"), nil)
}
`

// useGoCache avoids compiling the standard library again.
func useGoCache(t *testing.T) {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(out)))
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOPROXY", "off")
}

func TestStagesGo(t *testing.T) {
	useGoCache(t)
	t.Run("vendored", func(t *testing.T) {
		s := newStaging(t, map[string]string{
			"go.mod":                        "module example.com/hello/v2\n\ngo 1.21\n\nrequire example.com/greet v1.0.0\n",
			"main.go":                       fmt.Sprintf(goServer, "\n\t\"example.com/greet\"\n", "greet.Hello"),
			"vendor/modules.txt":            "# example.com/greet v1.0.0\n## explicit; go 1.21\nexample.com/greet\n",
			"vendor/example.com/greet/g.go": "package greet\n\nconst Hello = \"hello from vendor\"\n",
		})
		serve(t, s, "go", "hello from vendor")
		if got, want := s.result().ProcessTypes["web"], "./bin/hello"; got != want {
			t.Errorf("got start command %q; want %q", got, want)
		}
	})
	t.Run("without go.mod", func(t *testing.T) {
		s := newStaging(t, map[string]string{"main.go": fmt.Sprintf(goServer, "", `"old way"`)})
		serve(t, s, "go", "old way")
	})
	t.Run("only program below", func(t *testing.T) {
		s := newStaging(t, map[string]string{
			"go.mod": "module example.com/hello\n\ngo 1.21\n", "lib.go": "package hello\n",
			"cmd/web/main.go": fmt.Sprintf(goServer, "", `"from cmd"`),
		})
		serve(t, s, "go", "from cmd")
	})
}

func TestGoFailuresSayTheMend(t *testing.T) {
	useGoCache(t)
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"several programs", map[string]string{
			"go.mod": "module m\n\ngo 1.21\n", "cmd/a/main.go": "package main\n", "cmd/b/main.go": "package main\n",
		}, "set GO_INSTALL_PACKAGE_SPEC to one or more of m/cmd/a m/cmd/b"},
		{"no program", map[string]string{"go.mod": "module m\n\ngo 1.21\n", "a.go": "package a\n"}, "the app has no package main"},
		{"unreachable module", map[string]string{
			"go.mod":  "module m\n\ngo 1.21\n\nrequire example.com/greet v1.0.0\n",
			"main.go": "package main\n\nimport _ \"example.com/greet\"\n\nfunc main() {}\n",
		}, "run `go mod vendor` and push again"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newStaging(t, test.files)
			code, out := s.build("-buildpackOrder=" + s.addSystem())
			if code != 223 || !strings.Contains(out, test.want) {
				t.Errorf("got exit %d and %q; want 223 and %q", code, out, test.want)
			}
		})
	}
}

const nodeServer = `const greet = require('greet');
require('http').createServer((q, r) => r.end(greet())).listen(process.env.PORT);
`

func TestStagesNodeJS(t *testing.T) {
	need(t, "node", "npm")
	manifest := `{"name":"web","version":"1.0.0","scripts":{"start":"node web.js"},"dependencies":{"greet":"file:./greet"}}`
	t.Run("installs", func(t *testing.T) {
		s := newStaging(t, map[string]string{
			"package.json": manifest, "web.js": nodeServer,
			"greet/package.json": `{"name":"greet","version":"1.0.0","main":"i.js"}`, "greet/i.js": "module.exports = () => 'installed'",
		})
		serve(t, s, "nodejs", "installed")
	})
	t.Run("vendored", func(t *testing.T) {
		s := newStaging(t, map[string]string{
			"package.json": manifest, "web.js": nodeServer,
			"node_modules/greet/package.json": `{"name":"greet","version":"1.0.0","main":"i.js"}`, "node_modules/greet/i.js": "module.exports = () => 'pushed ' + process.env.NODE_ENV",
		})
		serve(t, s, "nodejs", "pushed production")
	})
	t.Run("no start", func(t *testing.T) {
		s := newStaging(t, map[string]string{"package.json": "{}"})
		if code, out := s.build("-buildpackOrder=" + s.addSystem()); code != 223 || !strings.Contains(out, "**ERROR** no start command") {
			t.Errorf("got %d %q; want 223 and an explanation", code, out)
		}
	})
}

const pythonServer = `import os, http.server
import greet
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(greet.hello().encode())
http.server.HTTPServer(("", int(os.environ["PORT"])), H).serve_forever()
`

// wheel is a pure Python wheel with one module and one program.
func wheel(t *testing.T) string {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, f := range [][2]string{
		{"greet.py", "def hello():\n    return 'from a wheel'\ndef main():\n    print(hello())\n"},
		{"greet-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: greet\nVersion: 1.0\n"},
		{"greet-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"greet-1.0.dist-info/entry_points.txt", "[console_scripts]\ngreet = greet:main\n"},
		{"greet-1.0.dist-info/RECORD", "greet.py,,\ngreet-1.0.dist-info/METADATA,,\ngreet-1.0.dist-info/WHEEL,,\ngreet-1.0.dist-info/entry_points.txt,,\ngreet-1.0.dist-info/RECORD,,\n"},
	} {
		e, err := w.Create(f[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Write([]byte(f[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func pythonApp(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"requirements.txt": "greet==1.0\n", "web.py": pythonServer, "Procfile": "web: python3 web.py\nonce: greet\n",
		"vendor/greet-1.0-py3-none-any.whl": wheel(t),
	}
}

func TestStagesPython(t *testing.T) {
	need(t, "python3")
	s := newStaging(t, pythonApp(t))
	serve(t, s, "python", "from a wheel")
	once := start(t, filepath.Join(s.dir, "home"), "greet")
	if err := once.cmd.Wait(); err != nil || !strings.HasSuffix(once.out.String(), "\nfrom a wheel\n") {
		t.Errorf("program of the wheel: %v, %q", err, once.out.String())
	}
}

func TestStagesPythonWithoutPip(t *testing.T) {
	need(t, "python3")
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	// A python3 that knows no pip stands for a small Debian's.
	bin := t.TempDir()
	writeFiles(t, bin, map[string]string{"python3*": "#!/bin/sh\nif [ \"$2\" = pip ]; then echo No module named pip >&2; exit 1; fi\nexec " + python + " \"$@\"\n"})
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	s := newStaging(t, pythonApp(t))
	serve(t, s, "python", "from a wheel")
	once := start(t, filepath.Join(s.dir, "home"), "greet")
	if err := once.cmd.Wait(); err != nil || !strings.HasSuffix(once.out.String(), "\nfrom a wheel\n") {
		t.Errorf("program of the wheel: %v, %q", err, once.out.String())
	}
}

const rubyServer = `require 'bundler/setup'
require 'socket'
require 'greet'
server = TCPServer.new('0.0.0.0', ENV['PORT'].to_i)
loop do
  c = server.accept
  while (line = c.gets) && line != "\r\n"; end
  body = Greet::HELLO
  c.write "HTTP/1.1 200 OK\r\nContent-Length: #{body.size}\r\nConnection: close\r\n\r\n#{body}"
  c.close
end
`

func TestStagesRuby(t *testing.T) {
	need(t, "ruby", "gem")
	if err := exec.Command("ruby", "-e", "require 'bundler'").Run(); err != nil {
		t.Skip("needs Bundler")
	}
	gem := t.TempDir()
	writeFiles(t, gem, map[string]string{
		"lib/greet.rb":  "module Greet; HELLO = 'from a gem'; end\n",
		"greet.gemspec": "Gem::Specification.new { |s| s.name='greet'; s.version='1.0.0'; s.summary='s'; s.authors=['a']; s.files=['lib/greet.rb'] }\n",
	})
	build := exec.Command("gem", "build", "greet.gemspec")
	build.Dir = gem
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	archive, err := os.ReadFile(filepath.Join(gem, "greet-1.0.0.gem"))
	if err != nil {
		t.Fatal(err)
	}
	s := newStaging(t, map[string]string{
		"Gemfile": "source 'https://rubygems.org'\ngem 'greet'\n", "web.rb": rubyServer, "Procfile": "web: bundle exec ruby web.rb\n",
		"Gemfile.lock":                 "GEM\n  remote: https://rubygems.org/\n  specs:\n    greet (1.0.0)\n\nPLATFORMS\n  ruby\n\nDEPENDENCIES\n  greet\n",
		"vendor/cache/greet-1.0.0.gem": string(archive),
	})
	serve(t, s, "ruby", "from a gem")
}
