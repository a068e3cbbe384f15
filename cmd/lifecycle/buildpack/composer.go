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

// readComposer reads the app's composer.json, which may be in its web directory.
func (s *stage) readComposer(o phpOptions) (composerFiles, error) {
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

// installPackages installs the app's packages, unless they were pushed in vendor.
func (a *phpApp) installPackages() error {
	if a.composer.dir == "" {
		return nil
	}
	dir := filepath.Join(a.app, a.composer.dir)
	switch {
	case exists(filepath.Join(dir, "vendor", "autoload.php")):
		a.step("Using the vendor directory pushed with the app")
	case !a.composer.packages && !exists(filepath.Join(dir, "composer.lock")):
		return nil
	default:
		if err := a.runComposer(dir); err != nil {
			return err
		}
	}
	return a.linkVendor()
}

func (a *phpApp) runComposer(dir string) error {
	program := filepath.Join(dir, "composer.phar")
	if !exists(program) {
		var err error
		if program, err = a.find("php", "push the vendor directory with the app (composer install --no-dev)", []string{"composer", "composer.phar"}, "/usr/local/bin"); err != nil {
			return err
		}
	}
	if a.php.cli == "" {
		return fmt.Errorf("%w, which composer needs; or push the vendor directory with the app", lackOf("php").about("php (the command)"))
	}
	options := a.options.ComposerOptions
	if options == nil {
		options = []string{"--no-interaction", "--no-dev"}
	}
	a.step("Installing Composer dependencies")
	argv := append([]string{a.php.cli, program, "install", "--no-progress"}, options...)
	env := []string{"COMPOSER_HOME=" + filepath.Join(a.cache, "composer"), "COMPOSER_CACHE_DIR=" + filepath.Join(a.cache, "composer", "cache"),
		"PHPRC=" + filepath.Join(a.deps, "php", "php.ini"), "PHP_INI_SCAN_DIR=" + filepath.Join(a.deps, "php", "php.ini.d"), "TMPDIR=" + os.TempDir(), "COMPOSER_ALLOW_SUPERUSER=1"}
	if err := a.run(call{argv: argv, dir: dir, env: env}); err != nil {
		a.info("If packages could not be fetched: run `composer install --no-dev` and push the vendor directory with the app.")
		return fmt.Errorf("composer install failed: %w", err)
	}
	return nil
}

// linkVendor lets files of the web directory require 'vendor/autoload.php', as in Cloud Foundry's buildpack.
func (a *phpApp) linkVendor() error {
	link := filepath.Join(a.app, a.options.WebDir, "vendor")
	if a.composer.dir != "." || exists(link) || !exists(filepath.Join(a.app, a.options.WebDir)) || !a.has("vendor") {
		return nil
	}
	target, err := filepath.Rel(filepath.Join(a.app, a.options.WebDir), filepath.Join(a.app, "vendor"))
	if err != nil {
		return err
	}
	return os.Symlink(target, link)
}
