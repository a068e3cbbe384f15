package buildpack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lockOf is a Gemfile.lock with gems as `name version`.
func lockOf(gems ...string) string {
	var b strings.Builder
	b.WriteString("GEM\n  remote: https://rubygems.org/\n  specs:\n")
	for _, g := range gems {
		name, version, _ := strings.Cut(g, " ")
		b.WriteString("    " + name + " (" + version + ")\n      thin (>= 1.0)\n")
	}
	b.WriteString("\nPLATFORMS\n  ruby\n\nDEPENDENCIES\n  unicorn (~> 6)\n\nBUNDLED WITH\n   2.3.15\n")
	return b.String()
}

// The commands are ruby-buildpack's (src/ruby/finalize/release.go), but for those
// of Rack 3 without rackup.
func TestRubyStartCommand(t *testing.T) {
	const (
		rails4 = "bin/rails server -b 0.0.0.0 -p $PORT -e $RAILS_ENV"
		rackup = "bundle exec rackup config.ru -p $PORT"
	)
	tests := []struct {
		gems []string
		want string
	}{
		{nil, ""},
		{[]string{"sinatra 3.0.0"}, ""},
		{[]string{"rails 8.0.1", "rack 3.1.8", "puma 6.5.0"}, rails4},
		{[]string{"rails 4.0.0.beta1"}, rails4},
		{[]string{"rails 3.2.22", "thin 1.8.2"}, "bundle exec thin start -R config.ru -e $RAILS_ENV -p $PORT"},
		{[]string{"rails 3.2.22"}, "bundle exec rails server -p $PORT"},
		{[]string{"rails 2.3.18", "thin 1.8.2"}, "bundle exec thin start -e $RAILS_ENV -p $PORT"},
		{[]string{"rails 2.3.18"}, "bundle exec ruby script/server -p $PORT"},
		{[]string{"rack 2.2.10", "thin 1.8.2"}, "bundle exec thin start -R config.ru -e $RACK_ENV -p $PORT"},
		{[]string{"rack 3.1.8", "thin 2.0.1"}, "bundle exec thin start -R config.ru -e $RACK_ENV -p $PORT"},
		{[]string{"rack 2.2.10"}, rackup},
		{[]string{"rack 2.2.10", "puma 6.5.0"}, rackup},
		{[]string{"rack 3.1.8", "rackup 2.2.1", "puma 6.5.0"}, rackup},
		{[]string{"rack 3.1.8", "puma 6.5.0", "unicorn 6.1.0"}, "bundle exec puma -p $PORT config.ru"},
		{[]string{"rack 3.1.8", "unicorn 6.1.0"}, "bundle exec unicorn -p $PORT config.ru"},
		{[]string{"rack 3.1.8"}, rackup},
	}
	for _, test := range tests {
		for _, newline := range []string{"\n", "\r\n"} {
			lock := strings.ReplaceAll(lockOf(test.gems...), "\n", newline)
			if got := parseGems([]byte(lock)).startCommand(); got != test.want {
				t.Errorf("%v: got %q; want %q", test.gems, got, test.want)
			}
		}
	}
}

func TestFinalizeRuby(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  string
		log   string
	}{
		{"nothing known", nil, "", "**WARNING** the bundle has neither rails nor rack"},
		{"Procfile", map[string]string{"Procfile": "web: x\n"}, "", ""},
		{"Rack 3 alone", map[string]string{"Gemfile.lock": lockOf("rack 3.1.8")}, "bundle exec rackup config.ru -p $PORT", "**WARNING** Rack 3.1.8 has no rackup"},
		{"Rails", map[string]string{"Gemfile.lock": lockOf("rails 7.1.0"), "bin/rails": ""}, "bin/rails server -b 0.0.0.0 -p $PORT -e $RAILS_ENV", ""},
		{"Rails without bin/rails", map[string]string{"Gemfile.lock": lockOf("rails 7.1.0")}, "bundle exec rails server -b 0.0.0.0 -p $PORT -e $RAILS_ENV", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			app := t.TempDir()
			for name, text := range test.files {
				path := filepath.Join(app, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			var log strings.Builder
			got, err := finalizeRuby(&stage{app: app, log: &log})
			if err != nil || got != test.want || !strings.Contains(log.String(), test.log) || test.log == "" && log.Len() > 0 {
				t.Errorf("got %q, %v and log %q; want %q and %q", got, err, log.String(), test.want, test.log)
			}
		})
	}
}

func TestLockedGemfile(t *testing.T) {
	const asks, none = "ruby '~> 3.1'\ngem 'x'\n", "gem 'x'\n"
	for _, test := range []struct {
		gemfile, lock string
		want          bool
	}{
		{none, "", false}, {asks, "", false}, {none, "GEM\n", true}, {asks, "GEM\n", false}, {asks, "GEM\n\nRUBY VERSION\n   ruby 3.1.2p20\n", true},
	} {
		s := &stage{app: tree(t, map[string]string{"Gemfile": test.gemfile, "Gemfile.lock": test.lock})}
		if got := s.isLocked(); got != test.want {
			t.Errorf("%q, %q: got %v", test.gemfile, test.lock, got)
		}
	}
}
