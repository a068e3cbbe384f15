package jobscript

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"cupola/runtime/contract"
)

func pair(t *testing.T, kind int) (here, there *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	here, there = os.NewFile(uintptr(fds[0]), "here"), os.NewFile(uintptr(fds[1]), "there")
	t.Cleanup(func() { here.Close(); there.Close() })
	return here, there
}

// TestStandIn checks that a stand-in passes on each signal, also the last one before the script ends.
func TestStandIn(t *testing.T) {
	dir := t.TempDir()
	init := filepath.Join(dir, "init")
	if out, err := exec.Command("../init/build", init).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	o := contract.ScriptOptions{Pidfiles: filepath.Join(dir, "pids"), Peers: []contract.ScriptPeer{{Name: "web", Executable: "/bin/web"}, {Name: "down", Executable: "/bin/down"}}}
	for range 50 {
		packets, stdin := pair(t, unix.SOCK_SEQPACKET)
		process, socket := pair(t, unix.SOCK_STREAM)
		if err := unix.Sendmsg(int(packets.Fd()), []byte("web"), unix.UnixRights(int(socket.Fd())), nil, 0); err != nil {
			t.Fatal(err)
		}
		packets.Close()
		socket.Close()
		all, err := begin(o, stdin, init)
		if err != nil || len(all) != 1 {
			t.Fatalf("got %d, %v; want the one that runs", len(all), err)
		}
		text, err := os.ReadFile(filepath.Join(o.Pidfiles, "web.pid"))
		pid, _ := strconv.Atoi(string(text))
		name, _ := os.ReadFile("/proc/" + string(text) + "/comm")
		if err != nil || string(name) != "web\n" {
			t.Fatalf("got %q, %v; want the number of a process of that name, not %q", text, err, name)
		}
		for _, s := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGTERM} {
			if err := syscall.Kill(pid, s); err != nil {
				t.Fatal(err)
			}
		}
		all.remove()
		if err := all[0].cmd.Wait(); err != nil {
			t.Error(err)
		}
		all[0].socket.Close()
		got := make([]byte, 3)
		if n, err := process.Read(got); n != 2 || got[0] != byte(syscall.SIGUSR1) || got[1] != byte(syscall.SIGTERM) {
			t.Fatalf("got %d %v, %v; want both signals", n, got, err)
		}
	}
}
