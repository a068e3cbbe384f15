package cnb

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// environ is an environment that buildpacks change (buildpack.md: Environment).
type environ map[string]string

// rootDirs are variables that get directories of a layer.
type rootDirs map[string][]string

// The directories of layers, at build time and at launch.
var (
	buildDirs  = rootDirs{"bin": {"PATH"}, "lib": {"LD_LIBRARY_PATH", "LIBRARY_PATH"}, "include": {"CPATH"}, "pkgconfig": {"PKG_CONFIG_PATH"}}
	launchDirs = rootDirs{"bin": {"PATH"}, "lib": {"LD_LIBRARY_PATH"}}
)

// buildVars are the variables of the builder that buildpacks see; all others come from
// the platform directory (lifecycle: env.BuildEnvIncludelist).
var buildVars = []string{"CNB_STACK_ID", "HOSTNAME", "HOME", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"}

// launchHidden are the variables that the launcher keeps from apps (lifecycle: env.LaunchEnvExcludelist).
var launchHidden = []string{"CNB_LAYERS_DIR", "CNB_APP_DIR", "CNB_PROCESS_TYPE", "CNB_PLATFORM_API", "CNB_DEPRECATION_MODE"}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func environOf(list []string) environ {
	e := environ{}
	for _, kv := range list {
		if name, value, ok := strings.Cut(kv, "="); ok {
			e[name] = value
		}
	}
	return e
}

// buildEnviron is what buildpacks begin with.
func buildEnviron(list []string) environ {
	e := environOf(list)
	maps.DeleteFunc(e, func(name, _ string) bool { return !slices.Contains(buildVars, name) && !buildDirs.has(name) })
	if e["PATH"] == "" {
		e["PATH"] = defaultPath
	}
	return e
}

// launchEnviron is what a process begins with: all but what is the launcher's own.
func launchEnviron(list []string, own ...string) environ {
	e := environOf(list)
	for _, name := range launchHidden {
		delete(e, name)
	}
	if e["PATH"] == "" {
		e["PATH"] = defaultPath
	}
	e["PATH"] = strings.Join(slices.DeleteFunc(strings.Split(e["PATH"], ":"), func(dir string) bool { return slices.Contains(own, dir) }), ":")
	return e
}

func (r rootDirs) has(name string) bool {
	for _, names := range r {
		if slices.Contains(names, name) {
			return true
		}
	}
	return false
}

func (e environ) list() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(e)) {
		all = append(all, name+"="+e[name])
	}
	return all
}

// addRoot puts the directories of a layer before what the variables have.
func (e environ) addRoot(layer string, dirs rootDirs) {
	for dir, names := range dirs {
		path := filepath.Join(layer, dir)
		if !isDir(path) {
			continue
		}
		for _, name := range names {
			e[name] = path + join(":", e[name])
		}
	}
}

// join is text with a delimiter before it, if there is text.
func join(delimiter, text string) string {
	if text == "" {
		return ""
	}
	return delimiter + text
}

// addDir changes the environment by the files of a directory: NAME or NAME.ACTION, in
// the order of their names. Unknown actions change nothing.
func (e environ) addDir(dir string) error {
	return eachEnvFile(dir, func(file, value string) error {
		name, action, _ := strings.Cut(file, ".")
		if action == "delim" {
			return nil
		}
		delimiter, err := os.ReadFile(filepath.Join(dir, name+".delim"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		switch action {
		case "", "override":
			e[name] = value
		case "default":
			if e[name] == "" {
				e[name] = value
			}
		case "prepend":
			e[name] = value + join(string(delimiter), e[name])
		case "append":
			if e[name] != "" {
				value = e[name] + string(delimiter) + value
			}
			e[name] = value
		}
		return nil
	})
}

// withPlatform is the environment with the user's variables. They come before what
// the variables of directories have, and replace all others.
func (e environ) withPlatform(dir string) (environ, error) {
	with := maps.Clone(e)
	err := eachEnvFile(filepath.Join(dir, "env"), func(name, value string) error {
		if buildDirs.has(name) {
			value += join(":", with[name])
		}
		with[name] = value
		return nil
	})
	return with, err
}

// maxValue is the largest value of a variable, Linux's of an argument.
const maxValue = 128 << 10

// eachEnvFile calls f for each file of a directory that may not be there.
func eachEnvFile(dir string, f func(name, value string) error) error {
	return eachIn(dir, func(path string, isDir bool) error {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if isDir || !info.Mode().IsRegular() {
			return nil
		}
		if info.Size() > maxValue {
			return errors.New(path + " is too large for an environment variable")
		}
		value, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return f(filepath.Base(path), string(value))
	})
}

// eachIn calls f for each entry of a directory, in the order of their names.
func eachIn(dir string, f func(path string, isDir bool) error) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := f(filepath.Join(dir, entry.Name()), entry.IsDir()); err != nil {
			return err
		}
	}
	return nil
}
