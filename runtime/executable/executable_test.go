package executable

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// elfOf is the head of a program for a machine (62: amd64, 183: arm64), that needs a loader.
func elfOf(machine byte, loader string) string {
	zeros := func(n int) string { return strings.Repeat("\x00", n) }
	size := string([]byte{byte(len(loader) + 1)}) + zeros(7)
	return "\x7fELF\x02\x01\x01" + zeros(9) + "\x02\x00" + string([]byte{machine}) + "\x00\x01" + zeros(3) +
		"\x78\x00\x40" + zeros(5) + "\x40" + zeros(7) + zeros(8) + zeros(4) + "\x40\x00\x38\x00\x01\x00" + zeros(6) +
		"\x03" + zeros(3) + "\x04" + zeros(3) + "\x78" + zeros(7) + zeros(16) + size + size + "\x01" + zeros(7) + loader + "\x00"
}

func TestExplain(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	own, other := byte(62), byte(183)
	foreign := "arm64"
	if runtime.GOARCH == "arm64" {
		own, other, foreign = other, own, "amd64"
	}
	for name, content := range map[string]string{
		"usr/bin/python3": elfOf(own, "/lib/loader"), "lib/loader": "x", "app/server.sh": "#!/usr/bin/pyhton3\n", "app/crlf": "#!/usr/bin/python3 -u\r\n", "app/fine": "#!/usr/bin/python3\n",
		"app/arm": elfOf(other, "/lib/loader"), "app/alpine": elfOf(own, "/lib/ld-musl-x86_64.so.1"), "app/mac": "\xcf\xfa\xed\xfe", "app/run.exe": "MZ", "app/text": "hello", "app/plain": "#!/usr/bin/python3\n",
		"app/broken": "\x7fELF\x02\x01\x01", "app/empty": "", "app/dir/x": "", "app/bin/worker": "", "app/migrate": "",
	} {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o755); err != nil { //nolint:gosec // they are to be executed
			t.Fatal(err)
		}
	}
	if err := os.Chmod(root+"/app/plain", 0o644); err != nil { //nolint:gosec // it is not to be executed
		t.Fatal(err)
	}
	f := Files{Dir: "/app", Command: "./plain --now", Path: []string{"/none", "/usr/bin"}, Open: func(name string) (*os.File, error) { return os.Open(filepath.Join(root, name)) }}
	for said, want := range map[string]string{
		"bash: line 1: pyhton3: command not found":                                       "There is no command pyhton3 in the app or its stack: did you mean python3?",
		"/bin/sh: 1: gunicorn: not found":                                                "There is no command gunicorn in the app or its stack: add what brings it",
		"sh: ls: not found":                                                              "There is no command ls in the app or its stack: add",
		"bash: line 1: server.sh: command not found":                                     "server.sh is a file of the app, and not on its PATH: start it as ./server.sh",
		"bash: line 1: worker: command not found":                                        "worker is a file of the app, and not on its PATH: start it as bin/worker",
		"bash: line 1: wroker: command not found":                                        "There is no command wroker in the app or its stack: did you mean bin/worker?",
		"bash: line 1: migarte: command not found":                                       "There is no command migarte in the app or its stack: did you mean ./migrate?",
		"stat /app/sever.sh: no such file or directory":                                  "There is no file ./sever.sh (did you mean ./server.sh?)",
		"stat /usr/bin/pyhton3: no such file or directory":                               "There is no file /usr/bin/pyhton3 (did you mean /usr/bin/python3?)",
		"fork/exec /app/server.sh: no such file or directory":                            "The first line of ./server.sh names the interpreter /usr/bin/pyhton3",
		"permission denied":                                                              "./plain is not executable: run chmod +x ./plain",
		`"pyhton3": executable file not found in $PATH`:                                  "There is no command pyhton3 in the app or its stack: did you mean python3?",
		"/usr/bin/env: ‘pyhton3’: No such file or directory":                             "There is no command pyhton3 in the app or its stack: did you mean python3?",
		"env: can't execute 'pyhton3': No such file or directory":                        "There is no command pyhton3 in the app or its stack: did you mean python3?",
		`/usr/bin/env: 'bash\r': No such file or directory`:                              "A script of the app has the line ends of Windows (CR LF)",
		`env: $'bash\r': No such file or directory`:                                      "A script of the app has the line ends of Windows (CR LF)",
		"bash: line 1: ./sever.sh: No such file or directory":                            "There is no file ./sever.sh (did you mean ./server.sh?): check the start command",
		"bash: line 1: ./x: No such file or directory":                                   "There is no file ./x: check the start command",
		"bash: line 1: ./server.sh: cannot execute: required file not found":             "The first line of ./server.sh names the interpreter /usr/bin/pyhton3, which the app's stack does not have (did you mean /usr/bin/python3?)",
		"bash: ./server.sh: /usr/bin/pyhton3: bad interpreter: No such file":             "The first line of ./server.sh names the interpreter /usr/bin/pyhton3",
		"/bin/sh: 1: ./server.sh: not found":                                             "The first line of ./server.sh names the interpreter /usr/bin/pyhton3",
		"bash: line 1: /app/crlf: cannot execute: required file not found":               "./crlf has the line ends of Windows (CR LF): convert it with dos2unix",
		"bash: line 1: ./arm: cannot execute binary file: Exec format error":             "./arm is a program for " + foreign + " processors, and this machine has " + runtime.GOARCH,
		"fork/exec ./arm: exec format error":                                             "./arm is a program for " + foreign + " processors",
		"bash: line 1: ./alpine: cannot execute: required file not found":                "./alpine needs the loader /lib/ld-musl-x86_64.so.1, which the app's stack does not have (it is built for Alpine): build it statically",
		"bash: line 1: ./mac: cannot execute binary file: Exec format error":             "./mac is a program for macOS: build it for Linux (GOOS=linux GOARCH=" + runtime.GOARCH,
		"bash: line 1: ./run.exe: cannot execute binary file: Exec format error":         "./run.exe is a program for Windows",
		"bash: line 1: ./text: cannot execute binary file: Exec format error":            "./text is neither a program for Linux nor a script",
		"bash: line 1: ./empty: cannot execute binary file: Exec format error":           "./empty is neither a program for Linux nor a script",
		"bash: line 1: ./plain: Permission denied":                                       "./plain is not executable: run chmod +x ./plain",
		"bash: line 1: ./dir: Permission denied":                                         "./dir is a directory",
		"bash: line 1: ./broken: cannot execute binary file: Exec format error":          "",
		"bash: line 1: ./fine: No such file or directory":                                "",
		"bash: line 1: /usr/bin/python3: cannot execute: required file not found":        "",
		"curl: (6) Could not resolve host\nwarning: x":                                   "",
		"bash: line 1: pyhton3: command not found\ncleaning up":                          "There is no command pyhton3",
		"bash: line 1: one: command not found\nbash: line 2: pyhton3: command not found": "There is no command pyhton3",
	} {
		got := f.Explain(strings.Split(said, "\n"))
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s:\n got %q\nwant %q", said, got, want)
		}
	}
}

// TestExplainImage: an image has neither a stack nor files that a push left out.
func TestExplainImage(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, content := range map[string]string{"srv/server": "x", "bin/list": "x", "srv/script": "#!/bin/bash\n"} {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o755); err != nil { //nolint:gosec // they are to be executed
			t.Fatal(err)
		}
	}
	f := Files{Image: true, Dir: "/", Path: []string{"/bin"}, Open: func(name string) (*os.File, error) { return os.Open(filepath.Join(root, name)) }}
	for said, want := range map[string]string{
		"init: exec /bin/sh: no such file or directory":     "The image has no shell, /bin/sh, which a start command of the app needs, as does the shell form of ENTRYPOINT and CMD: reset the command (cf push -c null), or use an image with a shell",
		"init: exec /srv/sever: no such file or directory":  "There is no file /srv/sever (did you mean /srv/server?) in the image: check its ENTRYPOINT and CMD, and the start command",
		"init: exec /srv/script: no such file or directory": "The first line of /srv/script names the interpreter /bin/bash, which the image does not have: correct it, or use an image that has it",
		"/bin/sh: 1: gunicorn: not found":                   "There is no command gunicorn in the image: correct the start command, or use an image that has it",
		"/bin/sh: 1: lisst: not found":                      "There is no command lisst in the image: did you mean list? Correct the start command, and push again",
	} {
		if got := f.Explain([]string{said}); got != want {
			t.Errorf("%s: got %q; want %q", said, got, want)
		}
	}
}
