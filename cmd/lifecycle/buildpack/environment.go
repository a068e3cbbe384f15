package buildpack

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Buildpacks that take part in one staging find each other's work by the
// layout that all Cloud Foundry buildpacks share: what is in
// deps/<index>/bin, lib and so on is put into variables, while staging and at
// launch; deps/<index>/env holds variables for staging, one a file, and
// deps/<index>/profile.d scripts for the launch.

// searchPath is a variable made of directories of that name in deps/*.
type searchPath struct{ directory, variable string }

var (
	stagingPaths = []searchPath{{"bin", "PATH"}, {"lib", "LD_LIBRARY_PATH"}, {"lib", "LIBRARY_PATH"}, {"include", "CPATH"}, {"pkgconfig", "PKG_CONFIG_PATH"}}
	launchPaths  = []searchPath{{"bin", "PATH"}, {"lib", "LD_LIBRARY_PATH"}}
)

// dependencies lists deps/*, later buildpacks first, as their work precedes.
func (s *stage) dependencies() []string {
	dirs, _ := filepath.Glob(filepath.Join(filepath.Dir(s.deps), "*"))
	slices.Sort(dirs)
	slices.Reverse(dirs)
	return dirs
}

// setStagingEnvironment changes this process's environment, which the
// programs it runs inherit.
func (s *stage) setStagingEnvironment() error {
	for _, p := range stagingPaths {
		var found []string
		for _, dir := range s.dependencies() {
			if path := filepath.Join(dir, p.directory); exists(path) {
				found = append(found, path)
			}
		}
		if len(found) == 0 {
			continue
		}
		if old := os.Getenv(p.variable); old != "" {
			found = append(found, old)
		}
		if err := os.Setenv(p.variable, strings.Join(found, ":")); err != nil {
			return err
		}
	}
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(s.deps), "*", "env", "*"))
	for _, file := range files {
		value, err := os.ReadFile(file)
		if err == nil {
			err = os.Setenv(filepath.Base(file), string(value))
		}
		if err != nil {
			return fmt.Errorf("variable of another buildpack: %w", err)
		}
	}
	return nil
}

// writeLaunchEnvironment puts what all buildpacks supplied before the app's
// eyes when it is launched. The last buildpack does it for all.
func (s *stage) writeLaunchEnvironment() error {
	var lines []string
	for _, p := range launchPaths {
		var found []string
		for _, dir := range s.dependencies() {
			if exists(filepath.Join(dir, p.directory)) {
				found = append(found, "$DEPS_DIR/"+filepath.Base(dir)+"/"+p.directory)
			}
		}
		if len(found) > 0 {
			lines = append(lines, fmt.Sprintf(`export %s="%s${%s:+:$%s}"`, p.variable, strings.Join(found, ":"), p.variable, p.variable))
		}
	}
	if len(lines) > 0 {
		if err := s.writeProfile("000_multi-supply.sh", strings.Join(lines, "\n")+"\n"); err != nil {
			return err
		}
	}
	for _, dir := range s.dependencies() {
		scripts, _ := filepath.Glob(filepath.Join(dir, "profile.d", "*"))
		for _, script := range scripts {
			text, err := os.ReadFile(script)
			if err != nil {
				return err
			}
			if err := s.writeProfile(filepath.Base(dir)+"_"+filepath.Base(script), string(text)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *stage) writeProfile(name, text string) error {
	if err := os.MkdirAll(s.profile, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.profile, name), []byte(text), 0o644)
}

// profileScript writes a script that the launcher sources before the app
// starts. It must be plain sh: the stack may have no bash.
func (s *stage) profileScript(name string, lines ...string) error {
	dir := filepath.Join(s.deps, "profile.d")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".sh"), []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}
