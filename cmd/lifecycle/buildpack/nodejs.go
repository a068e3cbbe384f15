package buildpack

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// packageJSON is what is read of a package.json.
type packageJSON struct {
	Main         string            `json:"main"`
	Scripts      map[string]string `json:"scripts"`
	Engines      map[string]any    `json:"engines"`
	Dependencies map[string]any    `json:"dependencies"`
	Optional     map[string]any    `json:"optionalDependencies"`
}

func detectNodeJS(app string) bool { return exists(filepath.Join(app, "package.json")) }

// supplyNodeJS installs what package.json names, unless the app brings its
// node_modules.
func supplyNodeJS(s *stage) error {
	node, err := s.find("node", "", []string{"node", "nodejs"}, "/usr/local/bin", "/usr/lib/nodejs/bin")
	if err != nil {
		return err
	}
	p, err := s.readPackage()
	if err != nil {
		return err
	}
	w, err := s.nodeRequirement(p)
	if err != nil {
		return err
	}
	chosen, err := s.choose("node", w, s.findAll(node, "--version", "/usr/local/bin/node", "/opt/node*/bin/node", "/usr/lib/node*/bin/node"))
	if err != nil {
		return err
	}
	node = chosen.path
	s.step("Using Node.js v%s of the stack", chosen.version)
	if err := s.linkNode(node); err != nil {
		return err
	}
	if err := s.nodeModules(p); err != nil {
		return err
	}
	lines := []string{
		`export NODE_ENV="${NODE_ENV:-production}"`,
		`export NODE_HOME="` + filepath.Dir(filepath.Dir(node)) + `"`,
		`export PATH="$HOME/node_modules/.bin:$PATH"`,
	}
	return s.profileScript("nodejs", lines...)
}

// nodeRequirement reads engines.node of package.json, else .nvmrc and .node-version.
func (s *stage) nodeRequirement(p packageJSON) (requirement, error) {
	if want, ok := p.Engines["node"].(string); ok {
		return requirement{from: "engines.node of package.json", constraint: want, digits: 1}, nil
	}
	for _, name := range []string{".nvmrc", ".node-version"} {
		text, err := s.readAppFile(name)
		if err != nil {
			return requirement{}, err
		}
		// A name of a line, as lts/iron, is any version's.
		if want := strings.TrimSpace(string(text)); len(numbers(trimV(want))) > 0 {
			return requirement{from: name, constraint: want, digits: 1}, nil
		}
	}
	return requirement{}, nil
}

// linkNode puts a Node.js that is not the first in the search path there.
func (s *stage) linkNode(node string) error {
	if first, err := exec.LookPath("node"); err == nil && first == node {
		return nil
	}
	bin := filepath.Join(s.deps, "bin")
	return errors.Join(os.MkdirAll(bin, 0o755), os.Symlink(node, filepath.Join(bin, "node")), os.Setenv("PATH", bin+":"+os.Getenv("PATH")))
}

func finalizeNodeJS(s *stage) (string, error) {
	p, err := s.readPackage()
	if err != nil {
		return "", err
	}
	return s.nodeCommand(p)
}

func (s *stage) readPackage() (packageJSON, error) {
	var p packageJSON
	root, err := os.OpenRoot(s.app)
	if err != nil {
		return p, err
	}
	defer func() { _ = root.Close() }()
	text, err := readOptional(root, "package.json")
	if err != nil || text == nil {
		return p, err
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("package.json is not valid: %w", err)
	}
	return p, nil
}

// nodeModules makes node_modules what package.json names, and runs the hooks
// that Cloud Foundry's buildpack took over from Heroku's.
func (s *stage) nodeModules(p packageJSON) error {
	vendored := !isEmptyDirectory(filepath.Join(s.app, "node_modules"))
	needed := len(p.Dependencies)+len(p.Optional) > 0 && !vendored
	hooks := p.Scripts["heroku-prebuild"] != "" || p.Scripts["heroku-postbuild"] != ""
	if vendored {
		s.step("Using the node_modules pushed with the app")
	}
	if !needed && !hooks {
		return nil
	}
	npm, err := s.find("node", "push node_modules with the app (npm install, no .cfignore entry)", []string{"npm"}, "/usr/local/bin")
	if err != nil {
		return err
	}
	env := []string{"NODE_ENV=production", "npm_config_cache=" + filepath.Join(s.cache, "npm"), "npm_config_update_notifier=false", "npm_config_fetch_retries=1", "npm_config_fund=false", "npm_config_audit=false"}
	if err := s.nodeHook(npm, "heroku-prebuild", p, env); err != nil {
		return err
	}
	if needed {
		if err := s.npmInstall(npm, env); err != nil {
			return err
		}
	}
	return s.nodeHook(npm, "heroku-postbuild", p, env)
}

func (s *stage) npmInstall(npm string, env []string) error {
	argv := []string{npm, "install", "--omit=dev"}
	switch {
	case s.has("package-lock.json"), s.has("npm-shrinkwrap.json"):
		argv = []string{npm, "ci", "--omit=dev"}
	case s.has("yarn.lock"), s.has("pnpm-lock.yaml"):
		s.warn("npm is used and reads neither yarn.lock nor pnpm-lock.yaml; push a package-lock.json for the versions it pins")
	default:
		s.warn("no package-lock.json: versions may differ from one staging to the next")
	}
	s.step("Running: npm %s", strings.Join(argv[1:], " "))
	if err := s.run(call{argv: argv, env: env}); err != nil {
		s.info("If packages could not be fetched: run `npm ci` and push node_modules with the app.")
		return err
	}
	return nil
}

func (s *stage) nodeHook(npm, name string, p packageJSON, env []string) error {
	if p.Scripts[name] == "" {
		return nil
	}
	s.step("Running: npm run %s", name)
	return s.run(call{argv: []string{npm, "run", name}, env: env})
}

// nodeCommand is the start script itself, since npm would stay in memory
// next to the app; npm is left to run it when hooks belong to it.
func (s *stage) nodeCommand(p packageJSON) (string, error) {
	start := strings.TrimSpace(p.Scripts["start"])
	switch {
	case start != "" && p.Scripts["prestart"] == "" && p.Scripts["poststart"] == "" && !strings.Contains(start, "npm_"):
		return start, nil
	case start != "":
		return "npm start", nil
	case s.has("server.js"):
		return "node server.js", nil
	case p.Main != "":
		return "node " + quoteShell(p.Main), nil
	case s.has("index.js"):
		return "node index.js", nil
	case s.has("Procfile"):
		return "", nil
	}
	return "", errors.New("no start command: package.json names neither scripts.start nor main, and there is no server.js and no Procfile")
}
