package main

import (
	"os"
	"strings"
	"testing"
)

// fake puts programs into the search path that stand for a toolchain that this machine lacks.
func fake(t *testing.T, programs map[string]string) {
	t.Helper()
	bin := t.TempDir()
	files := map[string]string{}
	for name, text := range programs {
		files[name+"*"] = "#!/bin/sh\n" + text
	}
	writeFiles(t, bin, files)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
}

// staged stages and returns the buildpack, the start command and the log.
func staged(t *testing.T, files map[string]string) (s *staging, buildpack, command string) {
	t.Helper()
	s = newStaging(t, files)
	s.mustBuild("-buildpackOrder=" + s.addSystem())
	r := s.result()
	return s, r.LifecycleMetadata.DetectedBuildpack, r.ProcessTypes["web"]
}

func TestStagesProcfile(t *testing.T) {
	s, buildpack, command := staged(t, map[string]string{"Procfile": "web: sh run.sh\n", "run.sh": "echo ran with sh\n"})
	if buildpack != "procfile" || command != "sh run.sh" {
		t.Errorf("got %q, %q; want procfile and its command", buildpack, command)
	}
	a := start(t, s.unpack(), "")
	if err := a.cmd.Wait(); err != nil || !strings.HasSuffix(a.out.String(), "ran with sh\n") {
		t.Errorf("got %v, %q", err, a.out.String())
	}
}

func TestStagesRust(t *testing.T) {
	need(t, "cargo")
	s, buildpack, command := staged(t, map[string]string{"Cargo.toml": "[package]\nname = \"hello\"\nversion = \"0.1.0\"\nedition = \"2021\"\n", "Cargo.lock": "version = 3\n\n[[package]]\nname = \"hello\"\nversion = \"0.1.0\"\n",
		"src/main.rs": "fn main() { println!(\"from rust\"); }\n"})
	if buildpack != "rust" || command != "./bin/hello" {
		t.Errorf("got %q, %q; want rust and its program", buildpack, command)
	}
	a := start(t, s.unpack(), "")
	if err := a.cmd.Wait(); err != nil || !strings.HasSuffix(a.out.String(), "from rust\n") {
		t.Errorf("got %v, %q", err, a.out.String())
	}
}

const runtimeConfig = `{"runtimeOptions": {"frameworks": [{"name": "Microsoft.NETCore.App", "version": "8.0.0"}, {"name": "Microsoft.AspNetCore.App", "version": "8.0.0"}]}}`

func TestStagesDotnet(t *testing.T) {
	fake(t, map[string]string{"dotnet": `if [ "$1" = --list-runtimes ]; then echo "Microsoft.NETCore.App 8.0.11 [/x]"; echo "Microsoft.AspNetCore.App 8.0.11 [/x]"; else test -x "$DOTNET_ROOT/dotnet" && echo "ran $1 at $ASPNETCORE_URLS"; fi`})
	t.Run("with the stack's runtime", func(t *testing.T) {
		s, buildpack, _ := staged(t, map[string]string{"web.runtimeconfig.json": runtimeConfig, "web.dll": ""})
		a := start(t, s.unpack(), "", "PORT=8080")
		if err := a.cmd.Wait(); err != nil || buildpack != "dotnet-core" || !strings.HasSuffix(a.out.String(), "ran ./web.dll at http://0.0.0.0:8080\n") {
			t.Errorf("got %q, %v, %q", buildpack, err, a.out.String())
		}
	})
	t.Run("self-contained", func(t *testing.T) {
		s, _, command := staged(t, map[string]string{"web.runtimeconfig.json": `{"runtimeOptions": {"includedFrameworks": [{"name": "Microsoft.NETCore.App", "version": "9.0.0"}]}}`, "web": "#!/bin/sh\necho by itself\n"})
		a := start(t, s.unpack(), "")
		if err := a.cmd.Wait(); err != nil || command != "exec ./web" || !strings.HasSuffix(a.out.String(), "by itself\n") {
			t.Errorf("got %q, %v, %q", command, err, a.out.String())
		}
	})
	for want, files := range map[string]map[string]string{
		"the app asks for Microsoft.NETCore.App 9.0.0, which stack 'test' does not have. Available versions: [8.0.11]": {"a.runtimeconfig.json": strings.ReplaceAll(runtimeConfig, "8.0.0", "9.0.0")},
		"the app is a project's source. Publish it": {"a.csproj": "<Project/>"},
		"a.runtimeconfig.json is not valid":         {"a.runtimeconfig.json": "{"},
		"whose program is missing":                  {"a.runtimeconfig.json": "{}"},
	} {
		s := newStaging(t, files)
		if code, out := s.build("-buildpackOrder=" + s.addSystem()); code != 223 || !strings.Contains(out, want) {
			t.Errorf("got exit %d and %q; want 223 and %q", code, out, want)
		}
	}
}

func TestStagesR(t *testing.T) {
	fake(t, map[string]string{"Rscript": `case "$1" in --version) echo "Rscript (R) version 4.2.2" ;; -e) [ "$3" = present ] ;; *) echo "ran $1" ;; esac`})
	packages := "packages:\n- cran_mirror: https://cran.example.com\n  packages:\n  - name: present\n"
	s, buildpack, _ := staged(t, map[string]string{"r.yml": packages, "Procfile": "web: Rscript app.R\n"})
	a := start(t, s.unpack(), "")
	if err := a.cmd.Wait(); err != nil || buildpack != "r" || !strings.HasSuffix(a.out.String(), "ran app.R\n") {
		t.Errorf("got %q, %v, %q", buildpack, err, a.out.String())
	}
	s = newStaging(t, map[string]string{"r.yml": packages + "  - name: Shiny\n"})
	if code, out := s.build("-buildpackOrder=" + s.addSystem()); code != 223 || !strings.Contains(out, "does not have: Shiny. Most are packages of Debian: sudo cupola stack build debian12 --with r --package r-cran-shiny") {
		t.Errorf("got exit %d and %q; want the missing package", code, out)
	}
}

// A stack without a toolchain says how to get it.
func TestMissingToolchain(t *testing.T) {
	if _, err := os.Stat("/usr/local/bin/Rscript"); err == nil {
		t.Skip("this machine has R")
	}
	t.Setenv("PATH", t.TempDir())
	s := newStaging(t, map[string]string{"r.yml": ""})
	code, out := s.build("-buildpackOrder=" + s.addSystem())
	want := "no Rscript in stack 'test': push with -s and a stack that has it (see cf stacks; host has what this machine has), or get it: sudo cupola stack build debian12 --with r, and push with -s debian12"
	if code != 223 || !strings.Contains(out, want) {
		t.Errorf("got exit %d and %q; want %q", code, out, want)
	}
}

func TestNothingDetected(t *testing.T) {
	s := newStaging(t, map[string]string{"index.html": ""})
	code, out := s.build("-buildpackOrder=" + s.addSystem())
	for _, want := range []string{"No buildpack takes this app. It has: index.html\n", "       ruby_buildpack         looks for a Gemfile\n", "Nearest guess: a site: add an empty file Staticfile (touch Staticfile)\nNone of the buildpacks detected a compatible application\n"} {
		if code != 222 || !strings.Contains(out, want) {
			t.Errorf("got exit %d and %q; want 222 and %q", code, out, want)
		}
	}
}
