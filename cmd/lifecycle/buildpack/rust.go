package buildpack

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func detectRust(app string) bool { return exists(filepath.Join(app, "Cargo.toml")) }

// finalizeRust compiles the app's programs into bin/, with the crates of vendor if the app brings them.
func finalizeRust(s *stage) (string, error) {
	cargo, err := s.find("rust", "build the program where Rust is (cargo build --release) and push it with -b binary_buildpack", []string{"cargo"}, "/usr/local/cargo/bin")
	if err != nil {
		return "", err
	}
	version, err := s.output(call{argv: []string{cargo, "--version"}})
	if err != nil {
		return "", err
	}
	s.step("Using %s of the stack", version)
	target := filepath.Join(s.cache, "target")
	env := []string{"CARGO_TARGET_DIR=" + target, "CARGO_TERM_COLOR=never"}
	if os.Getenv("CARGO_HOME") == "" {
		env = append(env, "CARGO_HOME="+filepath.Join(s.cache, "cargo"))
	}
	argv := []string{cargo, "build", "--release"}
	if s.has("Cargo.lock") {
		argv = append(argv, "--locked")
	}
	if s.has("vendor") || !s.hasCrates() {
		argv = append(argv, "--offline")
	}
	s.step("Running: cargo %s", strings.Join(argv[1:], " "))
	if err := s.run(call{argv: argv, env: env}); err != nil {
		s.info("If crates could not be fetched: run `cargo vendor`, add what it prints to .cargo/config.toml, and push again.")
		return "", err
	}
	return s.rustPrograms(cargo, target, env)
}

// hasCrates reports whether the lock file names crates of a registry.
func (s *stage) hasCrates() bool {
	text, err := s.readAppFile("Cargo.lock")
	return err != nil || text == nil || strings.Contains(string(text), "source = ")
}

// rustPrograms copies the programs, and returns the command that starts the only one or that of the package's name.
func (s *stage) rustPrograms(cargo, target string, env []string) (string, error) {
	out, err := s.output(call{argv: []string{cargo, "metadata", "--no-deps", "--offline", "--format-version", "1"}, env: env})
	if err != nil {
		return "", err
	}
	var metadata struct {
		Packages []struct {
			Name    string `json:"name"`
			Targets []struct {
				Kind []string `json:"kind"`
				Name string   `json:"name"`
			} `json:"targets"`
		} `json:"packages"`
	}
	if err := json.Unmarshal([]byte(out), &metadata); err != nil {
		return "", fmt.Errorf("cargo metadata: %w", err)
	}
	var names []string
	command := ""
	if err := os.MkdirAll(filepath.Join(s.app, "bin"), 0o755); err != nil {
		return "", err
	}
	for _, p := range metadata.Packages {
		for _, t := range p.Targets {
			if len(t.Kind) != 1 || t.Kind[0] != "bin" {
				continue
			}
			if err := copyFile(filepath.Join(s.app, "bin", t.Name), filepath.Join(target, "release", t.Name), 0o755); err != nil {
				return "", err
			}
			names = append(names, t.Name)
			if t.Name == p.Name {
				command = "./bin/" + quoteShell(t.Name)
			}
		}
	}
	switch {
	case len(names) == 0:
		return "", errors.New("the app has no program: Cargo.toml builds only a library")
	case len(names) == 1:
		command = "./bin/" + quoteShell(names[0])
	case command == "" && !s.has("Procfile"):
		s.warn("the app has several programs, in bin/: %s. Name the start command in a Procfile or with cf push -c.", strings.Join(names, " "))
	}
	return command, s.profileScript("rust", `export PATH="$PATH:$HOME/bin"`)
}
