package shell

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/cmd/lifecycle/launch"
)

// Launcher is the launcher for containers without bash.
func Launcher() launch.Full {
	return launch.Full{Decode: decodeStagingInfo, Interpret: interpret}
}

func decodeStagingInfo(text []byte) (launch.StagingInfo, error) {
	var info launch.StagingInfo
	err := yaml.Unmarshal(text, &info)
	return info, err
}

// interpret does what the launcher's bash script does.
func interpret(start launch.Start) int {
	if err := os.Chdir(start.Dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitCannotRun
	}
	fmt.Println(launch.PreStartMessage)
	env := append(start.Env, "PWD="+start.Dir)
	scripts, err := profileScripts(start.Dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitCannotRun
	}
	env, exited, status := profile(env, start.Dir, scripts)
	if exited {
		return status
	}
	fmt.Println(launch.StartMessage)
	command := start.Command
	if start.EntrypointPrefix != "" {
		command = "exec " + start.EntrypointPrefix + ` "$1"`
	}
	s, err := newShell(env, start.Dir, "--", start.Command)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitCannotRun
	}
	return s.run(strings.NewReader(command), "sh", true)
}

// profile sources the scripts and returns the environment they leave; exited
// says that one of them ended the shell, with that status.
func profile(env []string, dir string, scripts []string) (after []string, exited bool, status int) {
	if len(scripts) == 0 {
		return env, false, 0
	}
	s, err := newShell(env, dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return env, true, exitCannotRun
	}
	for _, script := range scripts {
		status = s.run(strings.NewReader("source "+quote(script)), "sh", false)
		if s.runner.Exited() {
			return env, true, status
		}
	}
	return s.exported(env), false, 0
}

// profileScripts lists the buildpacks' scripts, the app's, and .profile.
func profileScripts(app string) ([]string, error) {
	var scripts []string
	for _, dir := range []string{"../profile.d", ".profile.d"} {
		entries, err := os.ReadDir(filepath.Join(app, dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			name := filepath.Join(app, dir, e.Name())
			if !strings.HasPrefix(e.Name(), ".") && isFile(name) {
				scripts = append(scripts, name)
			}
		}
	}
	if name := filepath.Join(app, ".profile"); isFile(name) {
		scripts = append(scripts, name)
	}
	return scripts, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
