package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
		s.addSystem()
		s.mustBuild("-skipDetect", "-buildpackOrder=go_buildpack")
		if code, body := start(t, s.unpack(), "").get("/"); code != 200 || body != "old way" {
			t.Errorf("got %d %q; want 200 and old way", code, body)
		}
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
		{"unreadable go.mod", map[string]string{"go.mod": "module m\n\nnonsense\n", "main.go": "package main\n"}, "go: exit status 1: go: errors parsing go.mod:\ngo.mod:3: unknown directive: nonsense"},
		{"two packages in one", map[string]string{"go.mod": "module m\n\ngo 1.21\n", "a.go": "package a\n", "b.go": "package b\n"}, "go list: found packages a (a.go) and b (b.go) in"},
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

func TestGoPackageOfNoProgram(t *testing.T) {
	useGoCache(t)
	t.Setenv("GO_INSTALL_PACKAGE_SPEC", "./cmd/absent")
	s := newStaging(t, map[string]string{"go.mod": "module m\n\ngo 1.21\n", "main.go": "package main\n\nfunc main() {}\n"})
	code, out := s.build("-buildpackOrder=" + s.addSystem())
	if code != 223 || !strings.Contains(out, "**ERROR** go list: stat ") || !strings.Contains(out, "/cmd/absent: directory not found") {
		t.Errorf("got exit %d and %q; want 223 and what go list says", code, out)
	}
}

// The app's bin directory is in its search path, and the tag cloudfoundry set
// (go-buildpack: data.GoScript, SetBuildFlags).
func TestGoBinaryInSearchPath(t *testing.T) {
	useGoCache(t)
	s := newStaging(t, map[string]string{
		"go.mod": "module example.com/tool\n\ngo 1.21\n", "main.go": "package main\n\nfunc main() { println(where) }\n",
		"here.go": "//go:build !cloudfoundry\n\npackage main\n\nconst where = \"at home\"\n", "there.go": "//go:build cloudfoundry\n\npackage main\n\nconst where = \"in the cloud\"\n",
	})
	s.mustBuild("-buildpackOrder=" + s.addSystem())
	a := start(t, s.unpack(), "tool")
	if err := a.cmd.Wait(); err != nil || !strings.HasSuffix(a.out.String(), "\nin the cloud\n") {
		t.Errorf("got %v and %q; want the tool to run by its name", err, a.out.String())
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

// archive is a zip file of files.
func archive(t *testing.T, files map[string]string) string {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		e, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

// wheel is a pure Python wheel with one module and one program.
func wheel(t *testing.T) string {
	t.Helper()
	return archive(t, map[string]string{
		"greet.py":                             "def hello():\n    return 'from a wheel'\ndef main():\n    print(hello())\n",
		"greet-1.0.dist-info/METADATA":         "Metadata-Version: 2.1\nName: greet\nVersion: 1.0\n",
		"greet-1.0.dist-info/WHEEL":            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"greet-1.0.dist-info/entry_points.txt": "[console_scripts]\ngreet = greet:main\n",
		"greet-1.0.dist-info/RECORD":           "greet.py,,\ngreet-1.0.dist-info/METADATA,,\ngreet-1.0.dist-info/WHEEL,,\ngreet-1.0.dist-info/entry_points.txt,,\ngreet-1.0.dist-info/RECORD,,\n",
	})
}

func pythonApp(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"requirements.txt": "greet==1.0\n", "web.py": pythonServer, "Procfile": "web: python web.py\nonce: greet\n",
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

// buildGem makes a gem of files; those in exe/ are its programs.
func buildGem(t *testing.T, name, version string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	writeFiles(t, dir, files)
	var all, programs []string
	for file := range files {
		file = strings.TrimSuffix(file, "*")
		all = append(all, "'"+file+"'")
		if program, ok := strings.CutPrefix(file, "exe/"); ok {
			programs = append(programs, "'"+program+"'")
		}
	}
	writeFiles(t, dir, map[string]string{name + ".gemspec": fmt.Sprintf(
		"Gem::Specification.new { |s| s.name='%s'; s.version='%s'; s.summary='s'; s.authors=['a']; s.files=[%s]; s.bindir='exe'; s.executables=[%s] }\n",
		name, version, strings.Join(all, ","), strings.Join(programs, ","))})
	build := exec.Command("gem", "build", name+".gemspec")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	archive, err := os.ReadFile(filepath.Join(dir, name+"-"+version+".gem"))
	if err != nil {
		t.Fatal(err)
	}
	return string(archive)
}

// rubyApp is an app whose bundle has exactly these gems.
func rubyApp(t *testing.T, gems map[string]map[string]string) map[string]string {
	t.Helper()
	app := map[string]string{"Gemfile": "source 'https://rubygems.org'\n"}
	var specs, dependencies strings.Builder
	for _, g := range slices.Sorted(maps.Keys(gems)) {
		name, version, _ := strings.Cut(g, " ")
		app["Gemfile"] += "gem '" + name + "'\n"
		app["vendor/cache/"+name+"-"+version+".gem"] = buildGem(t, name, version, gems[g])
		fmt.Fprintf(&specs, "    %s (%s)\n", name, version)
		fmt.Fprintf(&dependencies, "  %s\n", name)
	}
	app["Gemfile.lock"] = "GEM\n  remote: https://rubygems.org/\n  specs:\n" + specs.String() + "\nPLATFORMS\n  ruby\n\nDEPENDENCIES\n" + dependencies.String()
	return app
}

func needRuby(t *testing.T) {
	t.Helper()
	need(t, "ruby", "gem")
	if err := exec.Command("ruby", "-e", "require 'bundler'").Run(); err != nil {
		t.Skip("needs Bundler")
	}
}

func TestStagesRuby(t *testing.T) {
	needRuby(t)
	files := rubyApp(t, map[string]map[string]string{"greet 1.0.0": {"lib/greet.rb": "module Greet; HELLO = 'from a gem'; end\n"}})
	files["web.rb"], files["Procfile"] = rubyServer, "web: bundle exec ruby web.rb\n"
	serve(t, newStaging(t, files), "ruby", "from a gem")
}

// argumentServer is a web server that answers its command line and RACK_ENV.
const argumentServer = `#!/usr/bin/env ruby
require 'socket'
server = TCPServer.new('0.0.0.0', ENV['PORT'].to_i)
loop do
  c = server.accept
  while (line = c.gets) && line != "\r\n"; end
  body = ([File.basename($0)] + ARGV + [ENV['RACK_ENV'], ENV['SECRET_KEY_BASE'].to_s.size]).join(' ').sub(ENV['PORT'], 'PORT')
  c.write "HTTP/1.1 200 OK\r\nContent-Length: #{body.size}\r\nConnection: close\r\n\r\n#{body}"
  c.close
end
`

// The bundle decides which server runs, without a Procfile.
func TestRubyServers(t *testing.T) {
	needRuby(t)
	rack := map[string]string{"lib/rack.rb": ""}
	server := func(name string) map[string]string { return map[string]string{"exe/" + name + "*": argumentServer} }
	tests := []struct {
		name  string
		gems  map[string]map[string]string
		files map[string]string
		want  string
	}{
		{"thin", map[string]map[string]string{"rack 2.2.10": rack, "thin 1.8.2": server("thin")}, nil, "thin start -R config.ru -e production -p PORT production 0"},
		{"rackup", map[string]map[string]string{"rack 2.2.10": server("rackup"), "puma 6.5.0": server("puma")}, nil, "rackup config.ru -p PORT production 0"},
		{"puma", map[string]map[string]string{"rack 3.1.8": rack, "puma 6.5.0": server("puma")}, nil, "puma -p PORT config.ru production 0"},
		{"rails", map[string]map[string]string{"rails 7.1.0": {"lib/rails.rb": ""}}, map[string]string{"bin/rails*": argumentServer}, "rails server -b 0.0.0.0 -p PORT -e production production 128"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			files := rubyApp(t, test.gems)
			maps.Copy(files, test.files)
			files["config.ru"] = ""
			serve(t, newStaging(t, files), "ruby", test.want)
		})
	}
}
