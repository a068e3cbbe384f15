package buildpack

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// composerFiles is what composer.json and composer.lock of an app ask for.
type composerFiles struct {
	dir        string   // below the app's, where they are; "" if there are none
	php        string   // constraint of PHP's version
	extensions []string // without "ext-"
	packages   bool     // there are packages to install
}

// composer reads the app's composer.json, which may be in its web directory.
func (s *stage) composer(o phpOptions) (composerFiles, error) {
	for _, dir := range []string{".", o.WebDir} {
		text, err := s.readAppFile(filepath.Join(dir, "composer.json"))
		if err != nil {
			return composerFiles{}, err
		}
		if text == nil {
			continue
		}
		var file struct {
			Require map[string]string `json:"require"`
		}
		if err := json.Unmarshal(text, &file); err != nil {
			return composerFiles{}, fmt.Errorf("invalid JSON in composer.json: %w", err)
		}
		c := composerFiles{dir: dir, php: file.Require["php"]}
		for _, name := range slices.Sorted(maps.Keys(file.Require)) {
			switch extension, ok := strings.CutPrefix(name, "ext-"); {
			case ok:
				c.extensions = append(c.extensions, strings.ToLower(extension))
			case strings.Contains(name, "/"):
				c.packages = true
			}
		}
		return c, nil
	}
	return composerFiles{}, nil
}

// composerInstall installs the app's packages, unless they were pushed in vendor.
func (s *stage) composerInstall(o phpOptions, c composerFiles, p phpProgram) error {
	if c.dir == "" {
		return nil
	}
	dir := filepath.Join(s.app, c.dir)
	switch {
	case exists(filepath.Join(dir, "vendor", "autoload.php")):
		s.step("Using the vendor directory pushed with the app")
	case !c.packages && !exists(filepath.Join(dir, "composer.lock")):
		return nil
	default:
		if err := s.runComposer(o, dir, p); err != nil {
			return err
		}
	}
	return s.linkVendor(o, c)
}

func (s *stage) runComposer(o phpOptions, dir string, p phpProgram) error {
	program := filepath.Join(dir, "composer.phar")
	if !exists(program) {
		var err error
		if program, err = s.find("php", "push the vendor directory with the app (composer install --no-dev)", []string{"composer", "composer.phar"}, "/usr/local/bin"); err != nil {
			return err
		}
	}
	if p.cli == "" {
		return fmt.Errorf("%w, which composer needs; or push the vendor directory with the app", lackOf("php").about("php (the command)"))
	}
	options := o.ComposerOptions
	if options == nil {
		options = []string{"--no-interaction", "--no-dev"}
	}
	s.step("Installing Composer dependencies")
	argv := append([]string{p.cli, program, "install", "--no-progress"}, options...)
	env := []string{"COMPOSER_HOME=" + filepath.Join(s.cache, "composer"), "COMPOSER_CACHE_DIR=" + filepath.Join(s.cache, "composer", "cache"),
		"PHPRC=" + filepath.Join(s.deps, "php", "php.ini"), "PHP_INI_SCAN_DIR=" + filepath.Join(s.deps, "php", "php.ini.d"), "TMPDIR=" + os.TempDir(), "COMPOSER_ALLOW_SUPERUSER=1"}
	if err := s.run(call{argv: argv, dir: dir, env: env}); err != nil {
		s.info("If packages could not be fetched: run `composer install --no-dev` and push the vendor directory with the app.")
		return fmt.Errorf("composer install failed: %w", err)
	}
	return nil
}

// linkVendor lets files of the web directory require 'vendor/autoload.php', as in Cloud Foundry's buildpack.
func (s *stage) linkVendor(o phpOptions, c composerFiles) error {
	link := filepath.Join(s.app, o.WebDir, "vendor")
	if c.dir != "." || exists(link) || !exists(filepath.Join(s.app, o.WebDir)) || !s.has("vendor") {
		return nil
	}
	target, err := filepath.Rel(filepath.Join(s.app, o.WebDir), filepath.Join(s.app, "vendor"))
	if err != nil {
		return err
	}
	return os.Symlink(target, link)
}
