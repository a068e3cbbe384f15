package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// runInit runs the init program and returns its exit code and output.
func runInit(t *testing.T, files []*os.File, args ...string) (int, string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(programsDir, "init"), args...)
	cmd.ExtraFiles = files
	out, err := cmd.CombinedOutput()
	return exitCode(t, err), string(out)
}

// writeFilter writes a BPF program that makes one system call fail with EPERM.
func writeFilter(t *testing.T, call uint32) string {
	t.Helper()
	program, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 4}, // seccomp_data.nr
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: call, SkipFalse: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(syscall.EPERM)},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
	})
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	for _, i := range program {
		// The assembler counts in host order, as struct sock_filter does.
		if err := binary.Write(&buf, binary.LittleEndian, struct {
			Op     uint16
			Jt, Jf uint8
			K      uint32
		}{i.Op, i.Jt, i.Jf, i.K}); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "seccomp.bpf")
	if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestInitInstallsFilter(t *testing.T) {
	filter := writeFilter(t, unix.SYS_UNAME)
	code, out := runInit(t, nil, "--seccomp", filter, "--", filepath.Join(programsDir, "lifecycle"), "uname")
	if code != 1 || !strings.Contains(out, "operation not permitted") {
		t.Errorf("filtered call: got %d %q; want it refused", code, out)
	}
	code, out = runInit(t, nil, "--seccomp", filter, "--", filepath.Join(programsDir, "lifecycle"), "cat", "/proc/self/status")
	for _, want := range []string{"\nNoNewPrivs:\t1\n", "\nSeccomp:\t2\n"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("got %d %q; want %q in it", code, out, want)
		}
	}
	// What the launcher becomes is under the filter as well.
	home := t.TempDir()
	code, out = runInit(t, nil, "--seccomp", filter, "--", filepath.Join(programsDir, "launcher"), home, filepath.Join(programsDir, "lifecycle")+" uname", "")
	if code != 1 || !strings.Contains(out, "operation not permitted") {
		t.Errorf("filtered call after the launcher: got %d %q; want it refused", code, out)
	}
}

func TestInitRefusesBadFilters(t *testing.T) {
	for _, size := range []int{0, 7, 8 * 4097} {
		path := filepath.Join(t.TempDir(), "seccomp.bpf")
		if err := os.WriteFile(path, make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
		if code, out := runInit(t, nil, "--seccomp", path, "--", "echo", "ran"); code != 125 || strings.Contains(out, "ran") {
			t.Errorf("filter of %d bytes: got %d %q; want 125 and no command", size, code, out)
		}
	}
	if code, out := runInit(t, nil, "--seccomp", "/no/such/file", "--", "echo", "ran"); code != 125 || strings.Contains(out, "ran") {
		t.Errorf("missing filter: got %d %q; want 125 and no command", code, out)
	}
}

func TestInitJoinsCgroupsAndClosesThem(t *testing.T) {
	var files []*os.File
	for range 2 {
		f, err := os.CreateTemp(t.TempDir(), "tasks")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	code, out := runInit(t, files, "--cgroup-fds", "3,4", "--", filepath.Join(programsDir, "lifecycle"), "ls", "/proc/self/fd")
	if code != 0 || strings.Contains(out, "tasks") {
		t.Errorf("got %d %q; want no descriptor of the cgroup files", code, out)
	}
	for _, f := range files {
		if text, err := os.ReadFile(f.Name()); err != nil || string(text) != "0" {
			t.Errorf("cgroup file: got %q, %v; want 0", text, err)
		}
	}
	if code, out := runInit(t, nil, "--cgroup-fds", "4000", "--", "echo", "ran"); code != 125 || strings.Contains(out, "ran") {
		t.Errorf("closed descriptor: got %d %q; want 125 and no command", code, out)
	}
}

func TestInitPassesNoDescriptorOn(t *testing.T) {
	leak, err := os.CreateTemp(t.TempDir(), "leak")
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	if code, out := runInit(t, []*os.File{leak}, "--", "/bin/sh", "-c", "echo x >&3"); code == 0 {
		t.Errorf("got %d %q; want descriptor 3 closed", code, out)
	}
	if text, err := os.ReadFile(leak.Name()); err != nil || len(text) > 0 {
		t.Errorf("got %q, %v written through a leaked descriptor", text, err)
	}
}

func TestInitMovesIntoRealCgroup(t *testing.T) {
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		t.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
	base, file := "/sys/fs/cgroup/pids", "tasks"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		base, file = "/sys/fs/cgroup", "cgroup.procs"
	}
	dir := filepath.Join(base, fmt.Sprintf("cupola-lifecycle-test-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	code, out := runInit(t, []*os.File{f}, "--cgroup-fds", "3", "--", filepath.Join(programsDir, "lifecycle"), "cat", "/proc/self/cgroup")
	if code != 0 || !strings.Contains(out, filepath.Base(dir)) {
		t.Errorf("got %d %q; want cgroup %s", code, out, filepath.Base(dir))
	}
}

// TestInitWaitsForWriters starts a program that is still open for writing.
func TestInitWaitsForWriters(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	content, err := os.ReadFile(filepath.Join(programsDir, "lifecycle"))
	if err == nil {
		err = os.WriteFile(program, content, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(program, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { writer.Close() })
	if code, out := runInit(t, nil, "--", program, "cat", program+"/none"); code != 1 {
		t.Errorf("got %d (%s); want the program to run", code, out)
	}
	writer, err = os.OpenFile(program, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if code, out := runInit(t, nil, "--", program, "cat", "/dev/null"); code != 126 || !strings.Contains(out, "text file busy") {
		t.Errorf("got %d (%s); want 126", code, out)
	}
}

func TestInitExitCodes(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		args []string
		want int
	}{
		{[]string{"--", "sh", "-c", "exit 3"}, 3},
		{[]string{"--", "no-such-program"}, 127},
		{[]string{"--", plain}, 126},
		{[]string{"--"}, 125},
		{[]string{"--", filepath.Join(filepath.Dir(plain), "missing")}, 127},
		{[]string{"--other", "1", "true"}, 125},
		{[]string{"--seccomp"}, 125},
		{[]string{"--cgroup-fds", "2", "--", "true"}, 125},
		{[]string{"--cgroup-fds", "x", "--", "true"}, 125},
		{[]string{"--cgroup-fds", "3,", "--", "true"}, 125},
		{[]string{"--rlimits", "4=0,7=64", "--", "sh", "-c", "exit $(ulimit -Hn)"}, 64},
		{[]string{"--rlimits", "7=18446744073709551616", "--", "true"}, 125},
		{[]string{"--rlimits", "7", "--", "true"}, 125},
		{[]string{"--rlimits", "7=1,", "--", "true"}, 125},
		{[]string{"--rlimits", "99=1", "--", "true"}, 125},
		{[]string{"true"}, 0},
	}
	for _, test := range tests {
		if code, out := runInit(t, nil, test.args...); code != test.want {
			t.Errorf("init %q: got %d (%s); want %d", test.args, code, out, test.want)
		}
	}
}
