package buildpack

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"cupola/runtime/contract"
)

// stage is one call of a buildpack's script.
type stage struct {
	language string
	app      string // the app's source, changed in place
	cache    string // kept from one staging to the next
	deps     string // of this buildpack: deps/<index>
	index    string
	profile  string // scripts that the launcher sources; finalize only
	args     int
	log      io.Writer
}

// newStage names the arguments: BUILD CACHE DEPS INDEX PROFILE_D, of which a
// script gets the first one, four or five.
func newStage(language string, args []string) *stage {
	s := &stage{language: language, args: len(args), log: os.Stdout}
	at := func(i int) string {
		if i < len(args) {
			return args[i]
		}
		return ""
	}
	s.app, s.cache, s.index, s.profile = at(0), at(1), at(3), at(4)
	s.deps = filepath.Join(at(2), s.index)
	return s
}

func (s *stage) needArguments(n int) error {
	if s.args < n {
		return fmt.Errorf("the script was called with %d arguments and needs %d", s.args, n)
	}
	return nil
}

// title is the buildpack's name in logs and results.
func (s *stage) title() string {
	return s.language + " " + contract.BuildpackVersion
}

// step, info and warn print in the form of all Cloud Foundry buildpacks.
func (s *stage) step(format string, args ...any) {
	fmt.Fprintf(s.log, "-----> "+format+"\n", args...)
}

func (s *stage) info(format string, args ...any) {
	fmt.Fprintf(s.log, "       "+format+"\n", args...)
}

func (s *stage) warn(format string, args ...any) {
	fmt.Fprintf(s.log, "       **WARNING** "+format+"\n", args...)
}

// writeConfig tells the builder who took part.
func (s *stage) writeConfig() error {
	return writeYAML(filepath.Join(s.deps, "config.yml"), map[string]any{
		"name": s.language, "version": contract.BuildpackVersion, "config": map[string]any{},
	})
}

// writeLaunch declares the web process. An empty command declares none, and
// the Procfile has the last word in any case.
func (s *stage) writeLaunch(command string) error {
	type process struct {
		Type    string `yaml:"type"`
		Command string `yaml:"command"`
	}
	processes := []process{}
	if command != "" {
		processes = append(processes, process{"web", command})
	}
	return writeYAML(filepath.Join(s.deps, "launch.yml"), map[string]any{"processes": processes})
}

func writeYAML(path string, v any) error {
	text, err := yaml.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// has reports whether the app has a file or directory of that name.
func (s *stage) has(name string) bool { return exists(filepath.Join(s.app, name)) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
