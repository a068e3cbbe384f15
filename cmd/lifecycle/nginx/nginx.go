// Package nginx completes an app's nginx.conf, which is a template: {{port}}, {{env "NAME"}}, {{module "NAME"}} and {{nameservers}}
// get their values when the app starts. The nginx buildpack puts this program into the droplet under the name that Cloud Foundry's
// program for it has.
package nginx

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"

	"cupola/runtime/pattern"
)

// Varify is the name of the program.
const Varify = "varify"

// Values complete a configuration.
type Values struct {
	Port          string
	Env           func(string) string
	Plain         []string // variables that are inserted as they are; HTML's special characters of others are escaped
	LocalModules  string   // directory of the app's modules, which come first
	GlobalModules string   // directory of nginx's
	NameServers   []string
	Temp          string // directory for nginx's own files
}

// Main completes a file in place, and the files that it includes: [-buildpack-yml-path FILE] NGINX.CONF LOCAL-MODULES GLOBAL-MODULES.
func Main(args []string) int {
	flags := flag.NewFlagSet(Varify, flag.ContinueOnError)
	settings := flags.String("buildpack-yml-path", "", "the app's buildpack.yml")
	if err := flags.Parse(args); err != nil || flags.NArg() < 3 {
		fmt.Fprintln(os.Stderr, "usage: varify [-buildpack-yml-path FILE] NGINX.CONF LOCAL-MODULES GLOBAL-MODULES")
		return 2
	}
	plain, err := plainVariables(*settings)
	if err == nil {
		err = Values{Port: os.Getenv("PORT"), Env: os.Getenv, Plain: plain, LocalModules: flags.Arg(1), GlobalModules: flags.Arg(2),
			NameServers: nameServers("/etc/resolv.conf"), Temp: os.TempDir()}.Complete(flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "varify:", err)
		return 1
	}
	return 0
}

// plainVariables reads nginx.plaintext_env_vars of a buildpack.yml; there need not be one.
func plainVariables(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil //nolint:nilerr // as with no file
	}
	var s struct {
		Nginx struct {
			Plain []string `yaml:"plaintext_env_vars"`
		} `yaml:"nginx"`
	}
	if err := yaml.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("%s is not valid YAML: %w", file, err)
	}
	return s.Nginx.Plain, nil
}

// nameServers reads a resolv.conf. Without one it is the name server of Cloud Foundry's containers (nginx-buildpack: varify.go).
func nameServers(file string) []string {
	text, _ := os.ReadFile(file)
	var all []string
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		if f := strings.Fields(s.Text()); len(f) > 1 && f[0] == "nameserver" {
			all = append(all, f[1])
		}
	}
	if len(all) == 0 {
		return []string{"169.254.0.2"}
	}
	return all
}

// included finds the files that a configuration includes.
var included = pattern.Lazy(`include\s+([-.\w/]+\.conf);`)

// Files returns a configuration and the files that it includes.
func Files(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("could not read config file: %w", err)
	}
	all := []string{file}
	for _, m := range included().FindAllStringSubmatch(string(text), -1) {
		path := m[1]
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(file), path)
		}
		all = append(all, path)
	}
	return all, nil
}

// Complete rewrites a configuration and the files that it includes.
func (v Values) Complete(file string) error {
	files, err := Files(file)
	if err != nil {
		return err
	}
	texts := make([]string, len(files))
	for i, name := range files {
		if texts[i], err = v.expand(name); err != nil {
			return err
		}
	}
	v.add(texts)
	for i, name := range files {
		if err := os.WriteFile(name, []byte(texts[i]), 0o644); err != nil {
			return fmt.Errorf("could not write config file: %w", err)
		}
	}
	return nil
}

// expand returns the text of a file with its values.
func (v Values) expand(name string) (string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("could not read config file: %w", err)
	}
	t, err := template.New(filepath.Base(name)).Funcs(template.FuncMap{
		"port": func() string { return v.Port },
		"env": func(name string) string {
			if slices.Contains(v.Plain, name) {
				return v.Env(name)
			}
			return strings.ReplaceAll(html.EscapeString(v.Env(name)), "+", "&#43;")
		},
		"module":      v.module,
		"nameservers": func() string { return strings.Join(v.NameServers, " ") },
	}).Parse(string(text))
	if err != nil {
		return "", fmt.Errorf("could not parse config file: %w", err)
	}
	var out strings.Builder
	if err := t.Execute(&out, nil); err != nil {
		return "", fmt.Errorf("could not write config file: %w", err)
	}
	return out.String(), nil
}

// module is the directive that loads a module: the app's own, else nginx's.
func (v Values) module(name string) string {
	dir := v.GlobalModules
	if _, err := os.Stat(filepath.Join(v.LocalModules, name+".so")); err == nil {
		dir = v.LocalModules
	}
	return "load_module " + filepath.Join(dir, name) + ".so;"
}

var httpBlock = pattern.Lazy(`(?m)^([^#\n]*\bhttp\s*\{)`)

// tempPaths are directories of nginx in the block http. A system's nginx has them where only root can write.
var tempPaths = []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}

// add completes the first text with what a system's nginx needs to run as an app, where the user says nothing of it: it stays in the
// foreground, and its files are in the container's temporary directory. No line moves, so that nginx's messages name the user's lines.
func (v Values) add(texts []string) {
	all := strings.Join(texts, "\n")
	main := ""
	if !hasDirective(all, "daemon") {
		main += "daemon off; "
	}
	if !hasDirective(all, "pid") {
		main += fmt.Sprintf("pid %q; ", filepath.Join(v.Temp, "nginx.pid"))
	}
	var paths strings.Builder
	for _, name := range tempPaths {
		if !hasDirective(all, name+"_temp_path") {
			fmt.Fprintf(&paths, " %s_temp_path %q;", name, filepath.Join(v.Temp, "nginx_"+name))
		}
	}
	done := false
	for i, text := range texts {
		if at := httpBlock().FindStringIndex(text); at != nil && !done {
			texts[i], done = text[:at[1]]+paths.String()+text[at[1]:], true
		}
	}
	texts[0] = main + texts[0]
}

// comment is what nginx ignores.
var comment = pattern.Lazy(`(?m)(^|[\s;{}])#.*$`)

// hasDirective reports whether a directive is in a configuration, outside of comments.
func hasDirective(text, name string) bool {
	return regexp.MustCompile(`(?m)(^|[\s;{}])` + name + `\s`).MatchString(comment().ReplaceAllString(text, "$1"))
}
