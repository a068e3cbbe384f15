package launch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// script runs the profile scripts in the order that Cloud Foundry gives them:
// the buildpacks', the app's, and .profile. $1 is the app's directory, $2 the
// command. The last line is completed with the program that executes it.
const script = `cd "$1"
echo '` + PreStartMessage + `'
for env_file in ../profile.d/* .profile.d/*; do
  if [ -f "$env_file" ]; then source "$env_file"; fi
done
if [ -f .profile ]; then source ./.profile; fi
shift
echo '` + StartMessage + `'
exec %s "$@"
`

// runBash executes the start command through bash; a command that needs no
// shell, in an app without profile scripts, is executed at once.
func (s Start) runBash(name string) int {
	if s.EntrypointPrefix != "" || hasScripts(s.Dir) {
		prefix := s.EntrypointPrefix
		if prefix == "" {
			prefix = "bash -c"
		}
		return execute(name, bash, []string{"bash", "-c", fmt.Sprintf(script, prefix), name, s.Dir, s.Command}, s.Env)
	}
	if err := os.Chdir(s.Dir); err != nil {
		return fail(name, exitStart, err)
	}
	_, _ = os.Stdout.WriteString(PreStartMessage + "\n" + StartMessage + "\n")
	env := set(s.Env, "PWD", s.Dir)
	if argv, ok := plainWords(s.Command, s.Env); ok {
		// Whatever goes wrong here, bash finds again and words as users
		// know it.
		if path, err := exec.LookPath(argv[0]); err == nil {
			_ = syscall.Exec(path, argv, env)
		}
	}
	return execute(name, bash, []string{"bash", "-c", s.Command}, env)
}

func execute(name, path string, argv, env []string) int {
	err := syscall.Exec(path, argv, env)
	return fail(name, exitStart, fmt.Errorf("exec %s: %w", path, err))
}

// hasScripts reports whether the app in dir brings a profile script.
func hasScripts(dir string) bool {
	if exists(filepath.Join(dir, ".profile")) {
		return true
	}
	for _, d := range []string{"../profile.d", ".profile.d"} {
		if f, err := os.Open(filepath.Join(dir, d)); err == nil {
			names, _ := f.Readdirnames(1)
			f.Close()
			if len(names) > 0 {
				return true
			}
		}
	}
	return false
}
