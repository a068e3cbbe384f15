package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"cupola/runtime/contract"
)

// world starts the launcher on a home directory; env is all there is.
type world struct {
	name string
	home string // as the launcher's process sees it
	run  func(t *testing.T, env []string, args ...string) (int, string)
}

// launch runs a command and returns the exit code and what follows the
// launcher's own lines.
func (w world) launch(t *testing.T, env []string, command string) (int, string) {
	t.Helper()
	env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin"}, env...)
	code, out := w.run(t, env, "app", command, "")
	_, rest, found := strings.Cut(out, "Invoking start command.\n")
	if !found {
		t.Fatalf("launcher: exit %d, %q", code, out)
	}
	return code, rest
}

// worlds are a container with bash, which is this machine, and, for root, one
// with nothing but our programs. Both must behave alike.
func worlds(t *testing.T, files map[string]string) []world {
	t.Helper()
	home := filepath.Join(t.TempDir(), "vcap")
	all := []world{{name: "bash", home: home, run: func(t *testing.T, env []string, args ...string) (int, string) {
		return place{programs: programsDir, dir: home}.run(t, env, append([]string{"launcher"}, args...))
	}}}
	writeFiles(t, home, files)
	if os.Getenv("CUPOLA_TEST_ROOT") == "1" {
		root := bareRoot(t)
		writeFiles(t, filepath.Join(root, "home/vcap"), files)
		all = append(all, world{name: "bare", home: "/home/vcap", run: func(t *testing.T, env []string, args ...string) (int, string) {
			return place{root, contract.ProgramDir, "/home/vcap"}.run(t, env, append([]string{"launcher"}, args...))
		}})
	}
	return all
}

// place is where init runs one of our programs.
type place struct {
	root     string // empty is the machine's
	programs string // directory of the programs in root
	dir      string // working directory in root
}

func (p place) run(t *testing.T, env, argv []string) (int, string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(p.programs, "init"), append([]string{"--", filepath.Join(p.programs, argv[0])}, argv[1:]...)...)
	cmd.Dir, cmd.Env = p.dir, env
	if p.root != "" {
		cmd.Err = nil // the path is one of the root's
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: p.root}
	}
	out, err := cmd.CombinedOutput()
	return exitCode(t, err), string(out)
}

// bareRoot is a root directory without a userland.
func bareRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"bin", "proc", "dev", "home/vcap/app", "tmp", contract.ProgramDir} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"init", "launcher", "lifecycle", "fileserver"} {
		data, err := os.ReadFile(filepath.Join(programsDir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(root, contract.ProgramDir, name), data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range contract.Links() {
		if err := os.Symlink(target, filepath.Join(root, contract.ProgramDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range contract.Tools() {
		if err := os.Symlink(contract.Helper, filepath.Join(root, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "dev/null"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	proc := filepath.Join(root, "proc")
	if err := unix.Mount("proc", proc, "proc", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(proc, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return root
}

func TestLaunchEnvironment(t *testing.T) {
	for _, w := range worlds(t, map[string]string{"app/x": ""}) {
		t.Run(w.name, func(t *testing.T) {
			env := []string{
				"PORT=8080", "INSTANCE_GUID=guid", "INSTANCE_INDEX=3", "VCAP_PLATFORM_OPTIONS={}",
				`VCAP_APPLICATION={"name":"a"}`, `VCAP_SERVICES={"m":[{"credentials":{"uri":"mysql://h/d"}}]}`, "HOME=/elsewhere",
			}
			for _, command := range []string{"env", "env; true", "exec env", "sh -c env"} {
				code, out := w.launch(t, env, command)
				got := map[string]string{}
				for line := range strings.Lines(out) {
					k, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
					got[k] = v
				}
				want := map[string]string{
					"HOME": w.home + "/app", "TMPDIR": w.home + "/tmp", "DEPS_DIR": w.home + "/deps", "DATABASE_URL": "mysql2://h/d", "PORT": "8080",
					"VCAP_APPLICATION": `{"host":"0.0.0.0","instance_id":"guid","instance_index":3,"name":"a","port":8080}`, "PWD": w.home + "/app",
				}
				for name, value := range want {
					if got[name] != value {
						t.Errorf("%s: got %s=%q (exit %d); want %q", command, name, got[name], code, value)
					}
				}
				if _, ok := got["VCAP_PLATFORM_OPTIONS"]; ok {
					t.Errorf("%s: VCAP_PLATFORM_OPTIONS is still set", command)
				}
			}
		})
	}
}

func TestLaunchCommands(t *testing.T) {
	files := map[string]string{
		"app/show*": "#!/bin/sh\necho \"show [$1] [$2] A=$A\"\n", "app/plain*": "echo no shebang\n", "app/not executable": "", "app/.hidden": "",
		"app/sub/in": "there\n",
	}
	tests := []struct {
		command string
		code    int
		out     string // compared when it does not start with …
	}{
		{command: "./show a b", out: "show [a] [b] A=\n"},
		{command: "./show 'a b' $PORT", out: "show [a b] [8080] A=\n"},
		{command: "./show $PORT ${PORT}x", out: "show [8080] [8080x] A=\n"},
		{command: "A=1 ./show", out: "show [] [] A=1\n"},
		{command: "export A=2; exec ./show", out: "show [] [] A=2\n"},
		{command: "cd sub && cat in", out: "there\n"},
		{command: "cd sub; cat in | tr a-z A-Z", out: "THERE\n"},
		{command: "./plain", out: "no shebang\n"},
		{command: "echo one; echo two >&2", out: "one\ntwo\n"},
		{command: "./show > out; cat out", out: "show [] [] A=\n"},
		{command: "cat sub/in > out2 && cat < out2", out: "there\n"},
		{command: "cat nothing 2>/dev/null || echo fell back", out: "fell back\n"},
		{command: "if [ -f sub/in ]; then echo yes; else echo no; fi", out: "yes\n"},
		{command: "for i in 1 2; do echo $i; done", out: "1\n2\n"},
		{command: "f() { echo in f $1; }; f x", out: "in f x\n"},
		{command: "echo $(cat sub/in)", out: "there\n"},
		{command: "exit 7", code: 7},
		{command: "false || exit 5", code: 5},
		{command: "(exit 4)", code: 4},
		{command: "! true", code: 1},
		{command: "trap 'echo bye' EXIT; echo hi", out: "hi\nbye\n"},
		{command: "kill -TERM $$; exit 9", code: -1},
		{command: "umask 077; umask", out: "0077\n"},
		{command: "./missing", code: 127, out: "…"},
		{command: "exec ./missing; echo still here", code: 127, out: "…"},
		{command: "echo 'unclosed", code: -2, out: "…"},
	}
	for _, w := range worlds(t, files) {
		t.Run(w.name, func(t *testing.T) {
			for _, test := range tests {
				code, out := w.launch(t, []string{"PORT=8080"}, test.command)
				if test.code == -2 && code != 0 {
					code = -2 // any failure
				}
				if code != test.code || !strings.HasPrefix(test.out, "…") && out != test.out {
					t.Errorf("%s: got %d %q; want %d %q", test.command, code, out, test.code, test.out)
				}
				if strings.Contains(out, "still here") {
					t.Errorf("%s: went on: %q", test.command, out)
				}
			}
		})
	}
}

func TestLaunchProfileScripts(t *testing.T) {
	files := map[string]string{
		"profile.d/2.sh": "export ORDER=$ORDER,b2\n", "profile.d/1.sh": "export ORDER=b1 SEEN=$PWD\nLOCAL=1\n",
		"app/.profile.d/a.sh": "export ORDER=$ORDER,app; export PATH=$PATH:$HOME/tools\n", "app/.profile": "export ORDER=$ORDER,last; if true; then return 0; fi\nexport ORDER=no\n",
		"app/tools/mine*": "#!/bin/sh\necho $ORDER in $SEEN local=$LOCAL\n",
	}
	for _, w := range worlds(t, files) {
		t.Run(w.name, func(t *testing.T) {
			want := "b1,b2,app,last in " + w.home + "/app local=\n"
			if code, out := w.launch(t, nil, "mine"); code != 0 || out != want {
				t.Errorf("got %d %q; want %q", code, out, want)
			}
		})
	}
}

func TestLaunchProfileThatExits(t *testing.T) {
	for _, w := range worlds(t, map[string]string{"app/.profile": "echo refusing; exit 3\n"}) {
		t.Run(w.name, func(t *testing.T) {
			code, out := w.run(t, []string{"PATH=/bin"}, "app", "echo started", "")
			if want := "Invoking pre-start scripts.\nrefusing\n"; code != 3 || out != want {
				t.Errorf("got %d %q; want 3 %q", code, out, want)
			}
		})
	}
}

func TestLaunchStagingInfo(t *testing.T) {
	info, err := json.Marshal(map[string]any{"detected_buildpack": "x", "start_command": "echo from staging", "config": map[string]string{"entrypoint_prefix": "./wrap prefixed"}})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ info, command, want string }{
		{`{"start_command":"echo from staging"}`, "", "from staging\n"},
		{`{"start_command":"echo from staging"}`, "echo mine", "mine\n"},
		{"---\nstart_command: echo from YAML\n", "", "from YAML\n"},
		{string(info), "", "prefixed [echo from staging]\n"},
		{string(info), "a  b", "prefixed [a  b]\n"},
	}
	for _, test := range tests {
		for _, w := range worlds(t, map[string]string{"app/wrap*": "#!/bin/sh\necho \"$1 [$2]\"\n", "staging_info.yml": test.info}) {
			if code, out := w.launch(t, nil, test.command); code != 0 || out != test.want {
				t.Errorf("%s, %s with %q: got %d %q; want %q", w.name, test.info, test.command, code, out, test.want)
			}
		}
	}
}

func TestLaunchErrors(t *testing.T) {
	for _, w := range worlds(t, map[string]string{"app/x": ""}) {
		code, out := w.run(t, nil, "app", "", "")
		if code != 1 || !strings.Contains(out, "no start command specified or detected in droplet") {
			t.Errorf("%s without command: got %d %q", w.name, code, out)
		}
		code, out = w.run(t, nil, "app")
		if code != 1 || !strings.Contains(out, "received only 1 arguments") {
			t.Errorf("%s with one argument: got %d %q", w.name, code, out)
		}
	}
}

// The app must be the process that was started: it gets the signals and its
// end is the container's.
func TestLaunchBecomesTheApp(t *testing.T) {
	for _, w := range worlds(t, map[string]string{"app/x": ""}) {
		for _, command := range []string{"sh -c 'echo $PPID'", "A=1 sh -c 'echo $PPID'", "true && sh -c 'echo $PPID'", "{ true; exec sh -c 'echo $PPID'; }"} {
			if code, out := w.launch(t, nil, command); code != 0 || strings.TrimSpace(out) != ppid() {
				t.Errorf("%s: %s: got %d, parent %q; want this process, %s", w.name, command, code, out, ppid())
			}
		}
	}
}

func ppid() string { return strconv.Itoa(os.Getpid()) }
