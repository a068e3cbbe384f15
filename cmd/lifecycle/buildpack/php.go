package buildpack

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cupola/cmd/lifecycle/phpapp"
	"cupola/runtime/pattern"
)

// detectPHP takes an app with a composer.json or a PHP file, up to two directories down (php-buildpack: bin/detect).
func detectPHP(app string) bool {
	for _, pattern := range []string{"composer.json", "*.php", "*/*.php", "*/*/*.php"} {
		if found, _ := filepath.Glob(filepath.Join(app, pattern)); len(found) > 0 {
			return true
		}
	}
	return false
}

// phpOptions is the app's .bp-config/options.json (php-buildpack: src/php/options).
type phpOptions struct {
	LibDir          string          `json:"LIBDIR"`
	WebDir          string          `json:"WEBDIR"`
	WebServer       string          `json:"WEB_SERVER"`
	Version         string          `json:"PHP_VERSION"`
	Extensions      []string        `json:"PHP_EXTENSIONS"`
	ZendExtensions  []string        `json:"ZEND_EXTENSIONS"`
	ComposerOptions []string        `json:"COMPOSER_INSTALL_OPTIONS"`
	Preprocess      json.RawMessage `json:"ADDITIONAL_PREPROCESS_CMDS"`
	StartCommand    string          `json:"APP_START_CMD"`
}

func (s *stage) phpOptions() (phpOptions, error) {
	var o phpOptions
	text, err := s.readAppFile(".bp-config/options.json")
	if err == nil && text != nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		return o, fmt.Errorf("invalid JSON in .bp-config/options.json: %w", err)
	}
	if !slices.Contains([]string{"", "httpd", "nginx", "none"}, o.WebServer) {
		return o, fmt.Errorf("invalid WEB_SERVER: %s (must be 'httpd', 'nginx', or 'none')", o.WebServer)
	}
	if o.LibDir == "" {
		o.LibDir = "lib"
	}
	if o.WebDir == "" {
		o.WebDir = "htdocs"
	}
	for name, dir := range map[string]string{"LIBDIR": o.LibDir, "WEBDIR": o.WebDir} {
		if !filepath.IsLocal(dir) {
			return o, fmt.Errorf("%s of .bp-config/options.json is %q: it must be a directory of the app, as htdocs", name, dir)
		}
	}
	return o, nil
}

// readAppFile reads a file of the app; one that does not exist is nil.
func (s *stage) readAppFile(name string) ([]byte, error) {
	root, err := os.OpenRoot(s.app)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return readOptional(root, name)
}

// phpProgram is a PHP of the stack.
type phpProgram struct {
	fpm, cli   string // cli is "" if the stack has none
	version    string
	extensions string   // directory of its modules
	builtIn    []string // modules that need no file
}

// phpApp is an app of PHP: what it asks for, and the PHP that it gets.
type phpApp struct {
	*stage
	options  phpOptions
	composer composerFiles
	php      phpProgram
}

// readPHPApp reads the app's configuration and chooses a PHP of the stack.
func readPHPApp(s *stage) (*phpApp, error) {
	a := &phpApp{stage: s}
	var err error
	if a.options, err = s.phpOptions(); err != nil {
		return nil, err
	}
	if a.composer, err = s.readComposer(a.options); err != nil {
		return nil, err
	}
	a.php, err = s.choosePHP(a.options, a.composer)
	return a, err
}

// supplyPHP writes the configuration of PHP and its web server, and installs the app's packages.
func supplyPHP(s *stage) error {
	a, err := readPHPApp(s)
	if err != nil {
		return err
	}
	s.step("Using PHP %s of the stack", a.php.version)
	if err := a.moveToWebDir(); err != nil {
		return err
	}
	if err := s.supplyPrograms(phpapp.Start); err != nil {
		return err
	}
	if a.php.cli != "" {
		if err := os.Symlink(a.php.cli, filepath.Join(s.deps, "bin", "php")); err != nil {
			return err
		}
	}
	if err := a.writeConfig(); err != nil {
		return err
	}
	if err := a.installPackages(); err != nil {
		return err
	}
	preprocess, err := a.options.preprocess()
	if err != nil {
		return err
	}
	return s.profileScript("php", append([]string{`export PHPRC="` + s.atRuntime("php/php.ini") + `"`, `export PHP_INI_SCAN_DIR="` + s.atRuntime("php/php.ini.d") + `"`}, preprocess...)...)
}

// preprocess are commands before the start: a text, a list of them, or a list of lists of words.
func (o phpOptions) preprocess() ([]string, error) {
	var one string
	var list []json.RawMessage
	if o.Preprocess == nil || json.Unmarshal(o.Preprocess, &one) == nil {
		return slices.DeleteFunc([]string{one}, func(s string) bool { return s == "" }), nil
	}
	if err := json.Unmarshal(o.Preprocess, &list); err != nil {
		return nil, fmt.Errorf("ADDITIONAL_PREPROCESS_CMDS of .bp-config/options.json: %w", err)
	}
	var out []string
	for _, item := range list {
		var words []string
		if json.Unmarshal(item, &one) == nil {
			words = []string{one}
		} else if err := json.Unmarshal(item, &words); err != nil {
			return nil, fmt.Errorf("ADDITIONAL_PREPROCESS_CMDS of .bp-config/options.json: %w", err)
		}
		out = append(out, strings.Join(words, " "))
	}
	return out, nil
}

// finalizePHP returns the start command: of the server, or of the app's program where no server is wanted.
func finalizePHP(s *stage) (string, error) {
	o, err := s.phpOptions()
	if err != nil {
		return "", err
	}
	if o.WebServer != "none" {
		return "exec php-start " + s.atRuntime("php/app.json"), nil
	}
	candidates := []string{"app.php", "main.php", "run.php", "start.php"}
	if o.StartCommand != "" {
		candidates = []string{o.StartCommand}
	}
	for _, name := range candidates {
		if s.has(name) {
			return "exec php " + quoteShell(name), nil
		}
	}
	if o.StartCommand != "" {
		return "", fmt.Errorf("APP_START_CMD file not found: %s", o.StartCommand)
	}
	if s.has("Procfile") {
		return "", nil
	}
	return "", errors.New("no standalone app found: set APP_START_CMD or create one of: " + strings.Join(candidates, ", "))
}

// moveToWebDir moves an app without a web directory there, except what must not be served.
func (a *phpApp) moveToWebDir() error {
	if a.options.WebServer == "none" || a.has(a.options.WebDir) {
		return nil
	}
	a.info("WEBDIR '%s' not found, moving app files into it", a.options.WebDir)
	entries, err := os.ReadDir(a.app)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(a.app, a.options.WebDir), 0o755); err != nil {
		return err
	}
	kept := []string{"manifest.yml", "Procfile", "composer.json", "composer.lock", "vendor", strings.Split(a.options.LibDir, "/")[0], strings.Split(a.options.WebDir, "/")[0]}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && e.Name() != ".htaccess" || slices.Contains(kept, e.Name()) {
			continue
		}
		if err := os.Rename(filepath.Join(a.app, e.Name()), filepath.Join(a.app, a.options.WebDir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

var (
	phpVersion    = pattern.Lazy(`PHP ([0-9.]+)`)
	phpExtensions = pattern.Lazy(`(?m)^extension_dir => (\S+)`)
)

// findPHPs lists the PHPs of the stack, the newest first.
func (s *stage) findPHPs(patterns ...string) []phpProgram {
	var all []phpProgram
	for _, pattern := range patterns {
		programs, _ := filepath.Glob(pattern)
		for _, fpm := range programs {
			out, err := s.output(call{argv: []string{fpm, "-n", "-v"}})
			m := phpVersion().FindStringSubmatch(out)
			if err != nil || m == nil || slices.ContainsFunc(all, func(p phpProgram) bool { return p.version == m[1] }) {
				continue
			}
			p := phpProgram{fpm: fpm, version: m[1]}
			for _, name := range []string{strings.Replace(filepath.Base(fpm), "php-fpm", "php", 1), "php"} {
				for _, dir := range []string{"/usr/bin", "/usr/local/bin"} {
					if path := filepath.Join(dir, name); p.cli == "" && isProgram(path) {
						p.cli = path
					}
				}
			}
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b phpProgram) int { return slices.Compare(numbers(b.version), numbers(a.version)) })
	return all
}

// choosePHP returns the newest PHP of the stack that options.json and composer.json accept.
func (s *stage) choosePHP(o phpOptions, c composerFiles) (phpProgram, error) {
	p, err := pickPHP(s.findPHPs("/usr/sbin/php-fpm*", "/usr/local/sbin/php-fpm*"), o, c)
	if err != nil {
		return p, err
	}
	return s.describePHP(p)
}

func pickPHP(all []phpProgram, o phpOptions, c composerFiles) (phpProgram, error) {
	if len(all) == 0 {
		return phpProgram{}, lackOf("php").about("php-fpm")
	}
	wanted, from := c.php, "composer.json"
	if o.Version != "" && o.Version != "{PHP_DEFAULT}" {
		wanted, from = o.Version, "PHP_VERSION of .bp-config/options.json"
		if m := latestPHP().FindStringSubmatch(wanted); m != nil {
			wanted = m[1] + "." + m[2] + ".*"
		}
	}
	if wanted == "" {
		return all[0], nil
	}
	var versions []string
	for _, p := range all {
		if satisfies(p.version, wanted) {
			return p, nil
		}
		versions = append(versions, p.version)
	}
	accepts := func(version string) bool { return satisfies(version, wanted) }
	return phpProgram{}, fmt.Errorf("%s asks for PHP %s, which %s does not have. Available versions: %v%s", from, wanted, stackName(), versions, elsewhere("php", accepts))
}

var latestPHP = pattern.Lazy(`^\{PHP_(\d)(\d+)_LATEST\}$`)

// describePHP asks a PHP what it contains.
func (s *stage) describePHP(p phpProgram) (phpProgram, error) {
	info, err := s.output(call{argv: []string{p.fpm, "-n", "-i"}})
	if err != nil {
		return p, err
	}
	if m := phpExtensions().FindStringSubmatch(info); m != nil {
		p.extensions = m[1]
	}
	modules, err := s.output(call{argv: []string{p.fpm, "-n", "-m"}})
	for line := range strings.Lines(modules) {
		p.builtIn = append(p.builtIn, strings.ToLower(strings.TrimSpace(line)))
	}
	return p, err
}
