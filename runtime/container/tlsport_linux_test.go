package container

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// networkWithLoopback moves the thread into a network namespace, for a container to
// share, and returns its path. The thread ends with the test.
func networkWithLoopback(t *testing.T) string {
	t.Helper()
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("/proc/%d/task/%d/ns/net", unix.Getpid(), unix.Gettid())
}

// tlsClient is a client of a TLS port, and what the terminator told it.
type tlsClient struct {
	net.Conn
	pid, port, variables, files int
}

func connectTLS(t *testing.T, port int) (c tlsClient) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0) // on this thread
	if err == nil {
		err = unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		t.Fatalf("connect to %d: %v", port, err)
	}
	c.Conn = fdConn{fd: fd}
	t.Cleanup(func() { unix.Close(fd) })
	line, err := bufio.NewReader(c).ReadString('\n')
	if err == nil {
		_, err = fmt.Sscan(line, &c.pid, &c.port, &c.variables, &c.files)
	}
	if err != nil || c.port != port {
		t.Fatalf("at %d: got %q, %v", port, line, err)
	}
	return c
}

// fdConn reads and writes a descriptor.
type fdConn struct {
	net.Conn
	fd int
}

func (c fdConn) Read(p []byte) (int, error)  { return unix.Read(c.fd, p) }
func (c fdConn) Write(p []byte) (int, error) { return unix.Write(c.fd, p) }

// TestTLSPorts has the init start the terminator when a client comes, as often as it
// ends, and end as the app does.
func TestTLSPorts(t *testing.T) { eachKind(t, testTLSPorts) }

func testTLSPorts(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	build(t, "./testdata/probe", filepath.Join(b.cfg.HelperDir, "lifecycle"))
	b.Engine = b.reopen(t)
	spec := b.spec("app", "catch")
	spec.NetNS, spec.TLSPorts, spec.Process.Env = networkWithLoopback(t), []uint16{61001, 61443}, []string{"SECRET=1"}
	_, r := b.start(t, spec)
	waitLine(t, r, "ready\n")
	if pids := b.tree.pids("app"); len(pids) != 2 {
		t.Errorf("got processes %v; want the init and the app, before a client came", pids)
	}
	first := connectTLS(t, 61001)
	if first.variables != 0 || first.files != 4 {
		t.Errorf("got %+v; want two sockets, and nothing of the app's environment", first)
	}
	if second := connectTLS(t, 61443); second.pid != first.pid {
		t.Errorf("got %d and %d; want one terminator for all ports", first.pid, second.pid)
	}
	for _, code := range []string{"0", "1"} {
		fmt.Fprintln(first, code)
		if n, err := first.Read(make([]byte, 1)); n > 0 || err != nil {
			t.Fatalf("got %d bytes, %v; want the terminator's end", n, err)
		}
		next := connectTLS(t, 61001)
		if next.pid == first.pid {
			t.Errorf("the terminator that ended with %s answers", code)
		}
		first = next
	}
	if out, _ := b.exec(t, "app", "ls", "/proc/1/fd"); !strings.HasPrefix(out, "0\n1\n2\n3\n4\n") {
		t.Errorf("got descriptors %q of the init", out)
	}
	if err := b.Signal("app", syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if exit := b.wait(t, "app"); exit.Code != 7 {
		t.Errorf("got %+v; want the app's end, whatever the terminator does", exit)
	}
}

// TestTLSPortsOfFewFiles gives an app fewer files than there are TLS ports.
func TestTLSPortsOfFewFiles(t *testing.T) { eachKind(t, testTLSPortsOfFewFiles) }

func testTLSPortsOfFewFiles(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	spec := b.spec("app", "catch")
	spec.Process.Nofile = 10
	for n := range 20 {
		spec.TLSPorts = append(spec.TLSPorts, uint16(61001+n))
	}
	_, r := b.start(t, spec)
	waitLine(t, r, "ready\n")
}

// TestTLSPortsInUse says why a container does not start.
func TestTLSPortsInUse(t *testing.T) { eachKind(t, testTLSPortsInUse) }

func testTLSPortsInUse(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	spec := b.spec("twice", "sleep")
	spec.TLSPorts = []uint16{61001, 61001}
	if out, exit := b.output(t, spec); exit.Code != 125 || out != "init: listen at TLS ports 61001,61001: address already in use\n" {
		t.Errorf("got %q, %+v", out, exit)
	}
}
