package buildpack

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"

	"cupola/runtime/pattern"
)

func detectRuby(app string) bool { return exists(filepath.Join(app, "Gemfile")) }

// supplyRuby installs the Gemfile's gems, from vendor/cache when the app
// brings them.
func supplyRuby(s *stage) error {
	ruby, err := s.find("ruby", "", []string{"ruby"}, "/usr/local/bin")
	if err != nil {
		return err
	}
	w, err := s.rubyRequirement()
	if err != nil {
		return err
	}
	chosen, err := s.choose("Ruby", w, s.findAll(ruby, "--version"))
	if err != nil {
		return err
	}
	s.step("Using Ruby %s of the stack", chosen.version)
	// Debian installs Bundler as bundle3.1 and the like.
	bundle, err := s.find("ruby", "", []string{"bundle", "bundle[0-9]*"}, "/usr/bin", "/usr/local/bin", "/var/lib/gems/*/bin")
	if err != nil {
		return err
	}
	if err := s.bundleInstall(bundle); err != nil {
		return err
	}
	return s.rubyRuntime(bundle)
}

// rubyLine is how a Gemfile asks for a version; Bundler refuses any other.
var (
	rubyLine  = pattern.Lazy(`(?m)^\s*ruby[\s(]+(["'][^#\n]*)`)
	quotedArg = pattern.Lazy(`["']([^"']+)["']`)
)

// rubyRequirement reads the line `ruby "~> 3.1"` of the Gemfile, else .ruby-version.
func (s *stage) rubyRequirement() (requirement, error) {
	text, err := s.readAppFile("Gemfile")
	if err != nil {
		return requirement{}, err
	}
	if m := rubyLine().FindSubmatch(text); m != nil {
		var all []string
		// Options follow after the versions: engine: "jruby".
		line, _, _ := strings.Cut(string(m[1]), ":")
		for _, q := range quotedArg().FindAllStringSubmatch(line, -1) {
			all = append(all, strings.TrimPrefix(q[1], "ruby-"))
		}
		return requirement{from: "the Gemfile", constraint: strings.Join(all, ", ")}, nil
	}
	if text, err = s.readAppFile(".ruby-version"); err != nil {
		return requirement{}, err
	}
	return requirement{from: ".ruby-version", constraint: strings.TrimPrefix(strings.TrimSpace(string(text)), "ruby-"), digits: 2}, nil
}

// bundleEnvironment is Bundler's configuration, by variables so that the
// app's own .bundle/config is neither needed nor changed.
func (s *stage) bundleEnvironment() []string {
	without := os.Getenv("BUNDLE_WITHOUT")
	if without == "" {
		without = "development:test"
	}
	env := []string{
		"BUNDLE_PATH=" + filepath.Join(s.deps, "bundle"), "BUNDLE_WITHOUT=" + without, "BUNDLE_GEMFILE=" + filepath.Join(s.app, "Gemfile"),
		"BUNDLE_APP_CONFIG=" + filepath.Join(s.deps, "bundle-config"), "BUNDLE_DISABLE_VERSION_CHECK=true",
		"BUNDLE_SILENCE_ROOT_WARNING=true", "BUNDLE_USER_HOME=" + filepath.Join(s.cache, "bundler"), "BUNDLE_RETRY=1",
	}
	if s.isLocked() {
		env = append(env, "BUNDLE_FROZEN=true")
	}
	return env
}

// isLocked reports whether Gemfile.lock can stay as it is. Bundler since 2.5 wants to add the Ruby that the Gemfile asks for, and
// installs nothing if it must not; it keeps the gems' versions.
func (s *stage) isLocked() bool {
	lock, err := s.readAppFile("Gemfile.lock")
	if err != nil || len(lock) == 0 {
		return false
	}
	text, err := s.readAppFile("Gemfile")
	return err == nil && (bytes.Contains(lock, []byte("RUBY VERSION")) || !rubyLine().Match(text))
}

func (s *stage) bundleInstall(bundle string) error {
	if s.has("vendor/bundle") {
		s.step("Using the gems in vendor/bundle")
		return nil
	}
	argv := []string{bundle, "install", "--jobs=4"}
	if s.has("vendor/cache") {
		s.step("Installing gems from vendor/cache")
		argv = append(argv, "--local")
	} else {
		s.step("Installing gems")
	}
	if err := s.run(call{argv: argv, env: s.bundleEnvironment()}); err != nil {
		s.info("If gems could not be fetched: run `bundle cache --all` and push vendor/cache with the app.")
		return err
	}
	return nil
}

// rubyRuntime makes `bundle` and the gems' programs known to the running app.
func (s *stage) rubyRuntime(bundle string) error {
	bin := filepath.Join(s.deps, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	shim := "#!/bin/sh\nexec " + quoteShell(bundle) + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "bundle"), []byte(shim), 0o755); err != nil {
		return err
	}
	path := s.atRuntime("bundle")
	if s.has("vendor/bundle") {
		path = "$HOME/vendor/bundle"
	}
	lines := []string{
		`export PATH="` + s.atRuntime("bin") + `:$HOME/bin:$PATH"`,
		`export BUNDLE_PATH="` + path + `"`,
		`export BUNDLE_GEMFILE="${BUNDLE_GEMFILE:-$HOME/Gemfile}"`,
		`export BUNDLE_WITHOUT="${BUNDLE_WITHOUT:-development:test}"`,
		`export BUNDLE_APP_CONFIG="` + s.atRuntime("bundle-config") + `"`,
		`export RACK_ENV="${RACK_ENV:-production}"`,
		`export RAILS_ENV="${RAILS_ENV:-production}"`,
		`export RAILS_SERVE_STATIC_FILES="${RAILS_SERVE_STATIC_FILES:-enabled}"`,
		`export RAILS_LOG_TO_STDOUT="${RAILS_LOG_TO_STDOUT:-enabled}"`,
		`export MALLOC_ARENA_MAX="${MALLOC_ARENA_MAX:-2}"`,
	}
	secret, err := s.railsSecret()
	if err != nil {
		return err
	}
	if secret != "" {
		lines = append(lines, `export SECRET_KEY_BASE="${SECRET_KEY_BASE:-`+secret+`}"`)
	}
	return s.profileScript("ruby", lines...)
}

// railsSecret is the SECRET_KEY_BASE without which Rails 4.1 and later do not
// start in production; "" for other apps. Later stagings find it in the cache.
func (s *stage) railsSecret() (string, error) {
	g, err := s.lockedGems()
	if err != nil || g.major("rails") < 4 || strings.HasPrefix(g["rails"], "4.0.") {
		return "", err
	}
	file := filepath.Join(s.cache, "secret_key_base")
	if kept, err := os.ReadFile(file); err == nil && len(kept) == 2*secretBytes {
		return string(kept), nil
	}
	random := make([]byte, secretBytes)
	_, _ = rand.Read(random) // it never fails
	secret := hex.EncodeToString(random)
	return secret, os.WriteFile(file, []byte(secret), 0o600)
}

// secretBytes is the size of the secrets that `rails secret` makes.
const secretBytes = 64

// finalizeRuby names the start command of the bundle's web framework. A Procfile
// replaces it.
func finalizeRuby(s *stage) (string, error) {
	g, err := s.lockedGems()
	if err != nil {
		return "", err
	}
	command := g.startCommand()
	switch {
	case command == "" && !s.has("Procfile"):
		s.warn("the bundle has neither rails nor rack, and there is no Procfile: name the start command with cf push -c or in the manifest")
	case strings.HasPrefix(command, "bundle exec rackup ") && g.lacksRackup() && !s.has("Procfile"):
		s.warn("Rack %s has no rackup: add one of the gems rackup, puma, thin or unicorn to the Gemfile", g["rack"])
	case s.needsStub(command):
		return "bundle exec " + strings.TrimPrefix(command, "bin/"), nil
	}
	return command, nil
}
