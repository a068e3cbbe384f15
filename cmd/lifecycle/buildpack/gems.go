package buildpack

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"cupola/runtime/pattern"
)

// gems are the versions of the gems of a bundle, by name.
type gems map[string]string

// lockedGem is the line of a gem in the specs of a Gemfile.lock. The lines of
// what a gem depends on are indented further.
var lockedGem = pattern.Lazy(`^ {4}(\S+) \(([^)]+)\)\r?\n?$`)

// lockedGems reads the Gemfile.lock that Bundler resolved the app's Gemfile to.
// An app without one has no gems.
func (s *stage) lockedGems() (gems, error) {
	root, err := os.OpenRoot(s.app)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	text, err := readOptional(root, "Gemfile.lock")
	if err != nil {
		return nil, err
	}
	return parseGems(text), nil
}

func parseGems(text []byte) gems {
	all := gems{}
	for line := range bytes.Lines(text) {
		if m := lockedGem().FindSubmatch(line); m != nil {
			all[string(m[1])] = string(m[2])
		}
	}
	return all
}

// has reports whether the bundle has a gem.
func (g gems) has(name string) bool { return g[name] != "" }

// major is the major version of a gem, 0 if the bundle has none of that name.
func (g gems) major(name string) int {
	first, _, _ := strings.Cut(g[name], ".")
	n, _ := strconv.Atoi(first)
	return n
}

// startCommand is the start command of an app with these gems, "" if they
// contain no web server that is known (ruby-buildpack: GenerateReleaseYaml).
func (g gems) startCommand() string {
	thin, rails := g.has("thin"), g.major("rails")
	switch {
	case rails >= 4:
		return "bin/rails server -b 0.0.0.0 -p $PORT -e $RAILS_ENV"
	case rails == 3 && thin:
		return "bundle exec thin start -R config.ru -e $RAILS_ENV -p $PORT"
	case rails == 3:
		return "bundle exec rails server -p $PORT"
	case rails == 2 && thin:
		return "bundle exec thin start -e $RAILS_ENV -p $PORT"
	case rails == 2:
		return "bundle exec ruby script/server -p $PORT"
	case g.has("rack") && thin:
		return "bundle exec thin start -R config.ru -e $RACK_ENV -p $PORT"
	case g.has("rack"):
		return g.rackCommand()
	}
	return ""
}

// rackCommand is Cloud Foundry's command for Rack. Rack 3 has no rackup: without
// the gem of that name it is the command of the server that the bundle has.
func (g gems) rackCommand() string {
	if !g.lacksRackup() {
		return "bundle exec rackup config.ru -p $PORT"
	}
	for _, server := range []string{"puma", "unicorn"} {
		if g.has(server) {
			return "bundle exec " + server + " -p $PORT config.ru"
		}
	}
	return "bundle exec rackup config.ru -p $PORT"
}

// lacksRackup reports whether the bundle's Rack comes without its program.
func (g gems) lacksRackup() bool { return g.major("rack") >= 3 && !g.has("rackup") }

// needsStub reports whether the start command runs bin/rails and the app has
// none: Cloud Foundry's buildpack copies Bundler's to there.
func (s *stage) needsStub(command string) bool {
	return strings.HasPrefix(command, "bin/rails ") && !exists(filepath.Join(s.app, "bin", "rails"))
}
