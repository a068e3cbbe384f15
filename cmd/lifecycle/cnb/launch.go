package cnb

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"cupola/cmd/lifecycle/toml"
	"cupola/cmd/lifecycle/vcap"
	"cupola/runtime/contract"
)

// launcher starts one process of a droplet.
type launcher struct {
	metadata
	layers, app string
	env         environ
}

// Launch is the launcher: argv is its name and what Cloud Foundry gives it: "app" with the
// command of a process and the execution metadata, "--" with that of a task, or nothing
// for the default process. It returns, with an exit code, only if nothing was started.
func Launch(argv []string) int {
	if err := launch(argv[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ERROR: "+phaseLaunch.in(err).Error())
		return phaseLaunch.code
	}
	return 0
}

func launch(args []string) error {
	l := &launcher{layers: cmp.Or(os.Getenv(contract.EnvCNBLayers), contract.CNBLayers), app: cmp.Or(os.Getenv(contract.EnvCNBApp), contract.CNBWorkspace)}
	if err := toml.ReadFile(metadataFile(l.layers), &l.metadata); err != nil {
		return err
	}
	for _, b := range l.Buildpacks {
		if compareAPI(b.API, oldestAPI) < 0 || compareAPI(b.API, newestAPI) > 0 {
			return fmt.Errorf("buildpack %s has the buildpack API %q; supported are %s to %s", b.ID, b.API, oldestAPI, newestAPI)
		}
	}
	kind := os.Getenv("CNB_PROCESS_TYPE")
	l.env = launchEnviron(os.Environ(), "/cnb/process", contract.LifecycleDir)
	if url := vcap.DatabaseURL(l.env[contract.EnvServices]); url != "" {
		l.env[contract.EnvDatabaseURL] = url
	}
	p, err := l.choose(args, kind)
	if err != nil {
		return err
	}
	return l.start(p)
}

// choose finds the process that arguments mean. A command that none of the processes has
// is run by a shell (cnbapplifecycle: findLaunchProcessType).
func (l *launcher) choose(args []string, kind string) (process, error) {
	args = slices.DeleteFunc(slices.Clone(args), func(s string) bool { return s == "" })
	if len(args) < 2 {
		kind = cmp.Or(kind, webType)
		for _, p := range l.Processes {
			if p.Type == kind {
				return p.split(), nil
			}
		}
		return process{}, fmt.Errorf("process type %s was not found", kind)
	}
	command := strings.Join(args[1:], " ")
	if args[0] != "--" {
		for _, p := range l.Processes {
			if p.line() == command {
				return p.split(), nil
			}
		}
	}
	return process{Command: words{args[1]}, Args: args[2:]}, nil
}

// split makes arguments of all but the first word of a command, since no user replaces
// the arguments here.
func (p process) split() process {
	if len(p.Command) > 1 {
		p.Args = append(append([]string{}, p.Command[1:]...), p.Args...)
		p.Command = p.Command[:1]
	}
	return p
}

// start becomes the process.
func (l *launcher) start(p process) error {
	if err := os.Chdir(l.app); err != nil {
		return err
	}
	if err := l.prepare(p.Type); err != nil {
		return err
	}
	dir := cmp.Or(p.WorkingDir, l.app)
	if !p.Direct {
		return l.startShell(p, dir)
	}
	if err := os.Setenv("PATH", l.env["PATH"]); err != nil {
		return err
	}
	path, err := exec.LookPath(p.Command[0])
	if err != nil {
		return err
	}
	if path, err = filepath.Abs(path); err != nil { // relative to the app's directory
		return err
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	return os.NewSyscallError("exec "+path, syscall.Exec(path, append(append([]string{}, p.Command...), p.Args...), l.env.list()))
}

// prepare makes the environment: of each buildpack first the directories of all its layers,
// then their variables, and after all buildpacks what the programs in exec.d say.
func (l *launcher) prepare(kind string) error {
	for _, b := range l.Buildpacks {
		dirs, err := l.dirsOf(b)
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			l.env.addRoot(dir, launchDirs)
		}
		for _, dir := range dirs {
			for _, name := range forType(kind, "env", "env.launch") {
				if err := l.env.addDir(filepath.Join(dir, name)); err != nil {
					return err
				}
			}
		}
	}
	return l.eachFile("exec.d", kind, l.runExecD)
}

// forType are directories of a layer, and the one that the last has for a process type.
func forType(kind string, names ...string) []string {
	if kind != "" {
		names = append(names, filepath.Join(names[len(names)-1], kind))
	}
	return names
}

// dirsOf are the layers of a buildpack.
func (l *launcher) dirsOf(b usedBy) (dirs []string, err error) {
	err = eachIn(filepath.Join(l.layers, escape(b.ID)), func(path string, isDir bool) error {
		if isDir {
			dirs = append(dirs, path)
		}
		return nil
	})
	return dirs, err
}

// eachFile calls f for the files in a directory of all layers.
func (l *launcher) eachFile(name, kind string, f func(path string) error) error {
	for _, b := range l.Buildpacks {
		dirs, err := l.dirsOf(b)
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			for _, name := range forType(kind, name) {
				err := eachIn(filepath.Join(dir, name), func(path string, isDir bool) error {
					if isDir {
						return nil
					}
					return f(path)
				})
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// startShell runs a process by a shell, after the profile scripts.
func (l *launcher) startShell(p process, dir string) error {
	script := ""
	if err := l.eachFile("profile.d", p.Type, func(path string) error {
		script += ". " + quote(path) + "\n"
		return nil
	}); err != nil {
		return err
	}
	if isFile(".profile") {
		script += ". ./.profile\n"
	}
	shell := shellPath()
	script += "cd " + quote(dir) + "\nexec " + shell + " -c " + commandScript(len(p.Args)) + "\n"
	argv := append([]string{filepath.Base(shell), "-c", script, "launcher", p.Command[0]}, p.Args...)
	return os.NewSyscallError("exec "+shell, syscall.Exec(shell, argv, l.env.list()))
}

// commandScript is the script of the inner shell: the command itself or, with arguments, each
// of them with its variables replaced (lifecycle: launch.bashCommandWithTokens).
func commandScript(args int) string {
	if args == 0 {
		return `"$@"`
	}
	var b strings.Builder
	b.WriteString(`'"$(eval echo \"$0\")"`)
	for i := range args {
		fmt.Fprintf(&b, ` "$(eval echo \"${%d}\")"`, i+1)
	}
	return b.String() + `' "$@"`
}

// shellPath is bash, which the specification asks for, or what the stack has instead.
func shellPath() string {
	for _, path := range []string{"/bin/bash", "/bin/sh"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return contract.LifecycleDir + "/sh"
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// maxExecD is the most that a program in exec.d may say, in bytes.
const maxExecD = 1 << 20

// runExecD sets the variables that a program prints, as TOML, to its file 3.
func (l *launcher) runExecD(path string) error {
	text, err := output3(exec.Command(path), l.env.list())
	vars := map[string]string{}
	if err == nil {
		err = toml.Unmarshal(text, &vars)
	}
	if err != nil {
		return fmt.Errorf("exec.d %s: %w", path, err)
	}
	for name, value := range vars {
		l.env[name] = value
	}
	return nil
}

// output3 is what a command writes to its file 3.
func output3(cmd *exec.Cmd, env []string) ([]byte, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = env, os.Stdout, os.Stderr, []*os.File{w}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	text, readErr := readAll(r, w)
	if err := cmd.Wait(); err != nil {
		return nil, err
	}
	return text, readErr
}

// readAll reads a pipe whose other end, here, it closes.
func readAll(r, w *os.File) ([]byte, error) {
	if err := w.Close(); err != nil {
		return nil, err
	}
	return readLimited(r, maxExecD)
}
