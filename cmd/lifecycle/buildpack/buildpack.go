// Package buildpack is the code of the system buildpacks. Their archives hold
// only scripts whose interpreter is the lifecycle program; it finds here what
// the script of that buildpack does.
package buildpack

import (
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// kind is what a buildpack does for its language.
type kind struct {
	// detect reports whether the app in the directory is one of its kind.
	detect func(app string) bool
	// supply installs what the app needs into the stage's dependency
	// directory; nil when that is nothing.
	supply func(*stage) error
	// finalize prepares the app itself and returns its start command, empty
	// when only the user can name one.
	finalize func(*stage) (string, error)
}

// kinds are the buildpacks' code, by the language of their manifest.yml.
func kinds() map[string]kind {
	return map[string]kind{
		"binary":      {detect: detectBinary, finalize: finalizeBinary},
		"dotnet-core": {detect: detectDotnet, finalize: finalizeDotnet},
		"go":          {detect: detectGo, finalize: finalizeGo},
		"java":        {detect: detectJava, supply: supplyJava, finalize: finalizeJava},
		"nginx":       {detect: detectNginx, supply: supplyNginx, finalize: finalizeNginx},
		"nodejs":      {detect: detectNodeJS, supply: supplyNodeJS, finalize: finalizeNodeJS},
		"php":         {detect: detectPHP, supply: supplyPHP, finalize: finalizePHP},
		"procfile":    {detect: detectProcfile, finalize: finalizeProcfile},
		"python":      {detect: detectPython, supply: supplyPython, finalize: finalizePython},
		"r":           {detect: detectR, supply: supplyR, finalize: finalizeR},
		"ruby":        {detect: detectRuby, supply: supplyRuby, finalize: finalizeRuby},
		"rust":        {detect: detectRust, finalize: finalizeRust},
		"staticfile":  {detect: detectStaticfile, supply: supplyStaticfile, finalize: finalizeStaticfile},
	}
}

// Main runs the script at args[0], which is in the bin directory of a
// buildpack, with the arguments that the builder gave it, and returns the
// exit code.
func Main(args []string) int {
	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: buildpack <script> <build-dir> …")
		return 2
	}
	if err := run(args[0], args[1:]); err != nil {
		fmt.Printf("       **ERROR** %v\n", err)
		return 1
	}
	return 0
}

func run(script string, args []string) error {
	dir := filepath.Dir(filepath.Dir(script))
	language, err := readLanguage(filepath.Join(dir, "manifest.yml"))
	if err != nil {
		return err
	}
	k, ok := kinds()[language]
	if !ok {
		return fmt.Errorf("no system buildpack for language %q", language)
	}
	s := newStage(language, args)
	switch filepath.Base(script) {
	case "detect":
		if !k.detect(s.app) {
			// The exit code is the answer; an explanation would only clutter
			// the log of every other app.
			os.Exit(1)
		}
		fmt.Println(s.title())
		return nil
	case "release":
		fmt.Println("---\ndefault_process_types: {}")
		return nil
	case "supply":
		return supply(k, s)
	case "finalize":
		return finalize(k, s)
	}
	return fmt.Errorf("no script %q", filepath.Base(script))
}

func supply(k kind, s *stage) error {
	if err := s.needArguments(4); err != nil {
		return err
	}
	s.step("%s", s.title())
	if err := s.writeConfig(); err != nil {
		return err
	}
	if k.supply == nil {
		return nil
	}
	if err := s.setStagingEnvironment(); err != nil {
		return err
	}
	return k.supply(s)
}

func finalize(k kind, s *stage) error {
	if err := s.needArguments(5); err != nil {
		return err
	}
	if err := s.setStagingEnvironment(); err != nil {
		return err
	}
	command, err := k.finalize(s)
	if err != nil {
		return err
	}
	if err := s.writeLaunchEnvironment(); err != nil {
		return err
	}
	return s.writeLaunch(command)
}

func readLanguage(manifest string) (string, error) {
	text, err := os.ReadFile(manifest)
	if err != nil {
		return "", err
	}
	var m struct {
		Language string `yaml:"language"`
	}
	if err := yaml.Unmarshal(text, &m); err != nil {
		return "", fmt.Errorf("read %s: %w", manifest, err)
	}
	return m.Language, nil
}
