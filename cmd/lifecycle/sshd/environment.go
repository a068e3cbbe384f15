package sshd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cupola/runtime/contract"
)

// environment is what sessions see: all that the app is given, as in Cloud
// Foundry, and a character set in which terminals can show it.
func environment(env []string) []string {
	env = slices.Clone(env)
	for name, value := range map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"} {
		if _, ok := lookup(env, name); !ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func lookup(env []string, name string) (string, bool) {
	for _, kv := range slices.Backward(env) {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			return v, true
		}
	}
	return "", false
}

// home is where sessions begin: /home/vcap of an app, or else the root.
func home() string {
	if dir := os.Getenv("HOME"); isDir(dir) {
		return dir
	}
	return "/"
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// shellPath is the user's shell: bash, sh or, in an image without either, our
// own.
func shellPath() string {
	for _, path := range []string{"/bin/bash", "/usr/local/bin/bash", "/usr/bin/bash", "/bin/sh"} {
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return programDir() + "/sh"
}

// programDir holds cupola's programs, with this one. It is contract.ProgramDir unless the daemon could not mount it.
func programDir() string {
	self, err := os.Executable()
	if err != nil {
		return contract.ProgramDir
	}
	return filepath.Dir(self)
}

// withSCP lets a command that is a copy find our scp after the image's own.
// The shell runs it in either case, for it is the shell that knows what the
// quotes and patterns of the path mean.
func withSCP(env []string, command string) []string {
	if !strings.HasPrefix(strings.TrimLeft(command, " "), "scp ") {
		return env
	}
	path, _ := lookup(env, "PATH")
	return append(slices.Clone(env), "PATH="+path+":"+programDir())
}
