package buildpack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/cmd/lifecycle/nginx"
	"cupola/runtime/pattern"
)

// detectNginx takes an app with a nginx.conf (nginx-buildpack: bin/detect).
func detectNginx(app string) bool { return exists(filepath.Join(app, "nginx.conf")) }

// supplyNginx puts the stack's nginx into the search path, and checks the app's configuration.
func supplyNginx(s *stage) error {
	program, err := s.findNginx()
	if err != nil {
		return err
	}
	if err := s.chooseNginx(program); err != nil {
		return err
	}
	if err := s.supplyPrograms(nginx.Varify); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(s.deps, "nginx"), 0o755); err != nil {
		return err
	}
	for link, target := range map[string]string{"bin/nginx": program, "nginx/modules": nginxModules} {
		if err := os.Symlink(target, filepath.Join(s.deps, link)); err != nil {
			return err
		}
	}
	if err := s.checkNginx(program); err != nil {
		return err
	}
	return s.profileScript("nginx", `export DEP_DIR="$DEPS_DIR/`+s.index+`"`, "mkdir -p logs")
}

// finalizeNginx returns the start command of Cloud Foundry's buildpack (nginx-buildpack: bin/release).
func finalizeNginx(*stage) (string, error) {
	return "varify -buildpack-yml-path ./buildpack.yml ./nginx.conf $HOME/modules $DEP_DIR/nginx/modules && exec nginx -p $PWD -c ./nginx.conf", nil
}

// nginxModules is where systems have modules of nginx.
const nginxModules = "/usr/lib/nginx/modules"

func (s *stage) findNginx() (string, error) {
	return s.find("nginx", "", []string{"nginx"}, "/usr/sbin", "/usr/local/sbin", "/usr/local/nginx/sbin")
}

var nginxVersion = pattern.Lazy(`nginx/([0-9.]+)`)

// chooseNginx checks what the app's buildpack.yml asks for. The names of nginx's version lines are for any version.
func (s *stage) chooseNginx(program string) error {
	var wanted struct {
		Dist  string `yaml:"dist"`
		Nginx struct {
			Version string `yaml:"version"`
		} `yaml:"nginx"`
	}
	root, err := os.OpenRoot(s.app)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	text, err := readOptional(root, "buildpack.yml")
	if err == nil {
		err = yaml.Unmarshal(text, &wanted)
	}
	if err != nil {
		return fmt.Errorf("buildpack.yml is not valid: %w", err)
	}
	if wanted.Dist == "openresty" {
		return fmt.Errorf("buildpack.yml asks for openresty, and %s has nginx: remove `dist: openresty`", stackName())
	}
	out, err := s.command(call{argv: []string{program, "-v"}}).CombinedOutput() // it prints to standard error
	if err != nil {
		return fmt.Errorf("%s -v: %w: %s", program, err, out)
	}
	version := "unknown"
	if m := nginxVersion().FindSubmatch(out); m != nil {
		version = string(m[1])
	}
	switch v := wanted.Nginx.Version; {
	case v == "":
		s.step("No nginx version specified - using the stack's => %s", version)
	case v == "mainline", v == "stable", satisfies(version, v):
		s.step("Requested nginx version: %s => %s", v, version)
	default:
		s.info("Available versions: mainline, stable, %s", version)
		return fmt.Errorf("Could not install nginx: Could not determine version: no match found for %s in [%s]: %s has no other", v, version, stackName()) //nolint:revive // Cloud Foundry's words
	}
	return nil
}

// checkNginx checks a completed copy of the app's configuration, as Cloud Foundry's buildpack does (nginx-buildpack: ValidateNginxConf).
func (s *stage) checkNginx(program string) error {
	dir, err := os.MkdirTemp("", "nginx")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, os.DirFS(s.app)); err != nil {
		return fmt.Errorf("copy the app to check nginx.conf: %w", err)
	}
	const port = "61234" // no number that a configuration would have
	conf := filepath.Join(dir, "nginx.conf")
	values := nginx.Values{Port: port, Env: os.Getenv, LocalModules: filepath.Join(s.app, "modules"), GlobalModules: nginxModules, NameServers: []string{"127.0.0.1"}, Temp: dir}
	if err := values.Complete(conf); err != nil {
		return fmt.Errorf("nginx.conf: %s", strings.ReplaceAll(err.Error(), dir+"/", ""))
	}
	if err := hasPort(conf, port); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o755); err != nil {
		return err
	}
	out, err := s.command(call{argv: []string{program, "-t", "-c", conf, "-p", dir}, dir: dir}).CombinedOutput()
	if err != nil {
		w := &indenter{w: s.log}
		_, _ = w.Write([]byte(strings.ReplaceAll(string(out), dir+"/", "")))
		w.flush()
		return fmt.Errorf("nginx.conf contains syntax errors: %w", err)
	}
	return s.checkAccessLog()
}

func hasPort(conf, port string) error {
	files, err := nginx.Files(conf)
	if err != nil {
		return err
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), port) {
			return nil
		}
	}
	return errors.New("The listen port value in nginx.conf must be configured to the template `{{port}}`: validation of port `{{port}}` failed: no `{{port}}` in nginx.conf") //nolint:revive // Cloud Foundry's words
}

var noAccessLog = pattern.Lazy(`(?i)access_log\s+off`)

func (s *stage) checkAccessLog() error {
	text, err := os.ReadFile(filepath.Join(s.app, "nginx.conf"))
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), "access_log") || noAccessLog().Match(text) {
		s.warn("Warning: access logging is turned off in your nginx.conf file, this may make your app difficult to debug.")
	}
	return nil
}
