package network

import (
	"io"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/vishvananda/netlink"
)

// Connections are those of clients at the ports given: established, and not by the container's own loopback.
func TestCountAt(t *testing.T) {
	socket := func(state uint8, port uint16, from string) *netlink.Socket {
		return &netlink.Socket{State: state, ID: netlink.SocketID{SourcePort: port, Destination: net.ParseIP(from)}}
	}
	all := []*netlink.Socket{
		socket(netlink.TCP_ESTABLISHED, 5432, "10.0.0.1"), socket(netlink.TCP_ESTABLISHED, 5432, "::ffff:10.0.0.1"), socket(netlink.TCP_ESTABLISHED, 40000, "10.0.0.3"),
		socket(netlink.TCP_ESTABLISHED, 5432, "127.0.0.1"), socket(netlink.TCP_TIME_WAIT, 5432, "10.0.0.1"), socket(netlink.TCP_LISTEN, 5432, "0.0.0.0"),
	}
	if got := countAt(all, []uint16{5432, 5433}); got != 2 {
		t.Errorf("got %d; want 2", got)
	}
	if got := countAt(all, nil); got != 0 {
		t.Errorf("got %d; want none", got)
	}
}

// The connections are those of the process's network namespace, and none of this one.
func TestConnections(t *testing.T) {
	needRoot(t)
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	own := hostAddress(t)
	client, err := net.Dial("tcp4", net.JoinHostPort(own, l.Addr().String()[len("0.0.0.0:"):]))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	cmd := exec.CommandContext(t.Context(), "unshare", "-n", "cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		_ = cmd.Wait()
	}()
	if _, err := io.WriteString(in, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil { // it is in its namespace
		t.Fatal(err)
	}
	for pid, want := range map[int]int{os.Getpid(): 1, cmd.Process.Pid: 0} {
		if got, err := Connections(pid, []uint16{port}); err != nil || got != want {
			t.Errorf("got %d connections, %v; want %d", got, err, want)
		}
	}
	if _, err := Connections(1<<30, nil); err == nil {
		t.Error("a process that is not there has connections")
	}
}

// hostAddress is an address of this machine that is not on its loopback.
func hostAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no address but those of its loopback")
	return ""
}

func BenchmarkConnections(b *testing.B) {
	needRoot(b)
	for range b.N {
		if _, err := Connections(os.Getpid(), []uint16{1}); err != nil {
			b.Fatal(err)
		}
	}
}
