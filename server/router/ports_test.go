package router

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"cupola/test/loopback"
)

// tcpApp is an instance that says its name, then echoes until its client has
// ended, then says goodbye.
func tcpApp(t *testing.T, name string) Endpoint {
	t.Helper()
	addr := loopback.Serve(t, func(c net.Conn) {
		defer c.Close()
		fmt.Fprintln(c, name)
		io.Copy(c, c)
		fmt.Fprintln(c, "bye")
	})
	return endpointOf(addr.String(), name, 0)
}

// portSite is a router with its ports, which end with the test.
type portSite struct {
	*Router
	*Ports
	t       *testing.T
	port    int
	reports chan error
	stop    func() // listening
}

func newPortSite(t *testing.T, c PortsConfig) *portSite {
	t.Helper()
	s := &portSite{t: t, port: loopback.FreePorts(t, 1)[0], reports: make(chan error, 10)}
	c.Host, c.Report = "127.0.0.1", func(_ int, _ string, err error) { s.reports <- err }
	s.Router = New(Config{Log: slog.New(slog.DiscardHandler)})
	s.Ports = NewPorts(s.Router, c)
	live, end := context.WithCancel(context.Background())
	ctx, stop := context.WithCancel(live)
	s.stop = stop
	ended := make(chan error)
	go func() { ended <- s.Run(ctx, live) }()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *portSite) lead(endpoints ...Endpoint) {
	s.Set(Table{Routes: []Route{{Port: s.port, AppGUID: appGUID, Endpoints: endpoints}}})
}

func (s *portSite) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// dial connects, waiting until the port is open, and reads which instance has it.
func (s *portSite) dial() (*net.TCPConn, string) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(5 * time.Millisecond) {
		c, err := net.Dial("tcp", s.addr())
		if err == nil {
			s.t.Cleanup(func() { c.Close() })
			name, _ := bufio.NewReaderSize(c, 16).ReadString('\n')
			return c.(*net.TCPConn), strings.TrimSpace(name)
		}
		if time.Now().After(deadline) {
			s.t.Fatal(err)
		}
	}
}

// closed waits until no process listens at the port.
func (s *portSite) closed() {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(5 * time.Millisecond) {
		c, err := net.Dial("tcp", s.addr())
		if err != nil {
			return
		}
		c.Close()
		if time.Now().After(deadline) {
			s.t.Fatal("the port stays open")
		}
	}
}

func TestPortsGoRoundAndCloseHalf(t *testing.T) {
	s := newPortSite(t, PortsConfig{})
	dead := endpointOf(deadAddr(t), "dead", 2)
	s.lead(tcpApp(t, "a"), tcpApp(t, "b"), dead)
	seen := map[string]int{}
	for range 20 {
		_, name := s.dial()
		seen[name]++
	}
	if seen["a"] < 5 || seen["b"] < 5 || seen["a"]+seen["b"] != 20 {
		t.Errorf("got %v; want both instances, and never the dead one", seen)
	}
	c, _ := s.dial()
	big := strings.Repeat("x", 1<<20)
	go func() {
		io.WriteString(c, big)
		c.CloseWrite()
	}()
	if back, err := io.ReadAll(c); err != nil || string(back) != big+"bye\n" {
		t.Errorf("got %d bytes, %v; want what was sent, and what was said after the end of it", len(back), err)
	}
}

func TestPortsWithoutInstancesReset(t *testing.T) {
	s := newPortSite(t, PortsConfig{})
	s.lead(endpointOf(deadAddr(t), "dead", 0))
	c, name := s.dial()
	if _, err := c.Read(make([]byte, 1)); name != "" || err == nil {
		t.Errorf("got %q, %v; want a connection that ends", name, err)
	}
}

func TestPortsCloseWithTheirRoute(t *testing.T) {
	s := newPortSite(t, PortsConfig{Linger: 200 * time.Millisecond})
	a := tcpApp(t, "a")
	s.lead(a)
	c, _ := s.dial()
	s.Set(Table{})
	s.closed()
	if _, err := fmt.Fprint(c, "still here"); err != nil {
		t.Errorf("got %v; want connections to go on for a while", err)
	}
	if _, err := io.ReadAll(c); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		t.Errorf("got %v; want the end of the connection", err)
	}
	s.lead(a)
	if _, name := s.dial(); name != "a" {
		t.Errorf("got %q from a port that is there again", name)
	}
}

func TestPortsSettle(t *testing.T) {
	s := newPortSite(t, PortsConfig{})
	a, b := tcpApp(t, "a"), tcpApp(t, "b")
	s.lead(a)
	c, _ := s.dial()
	s.lead(b)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Settle(short, "a"); err == nil {
		t.Error("an instance is idle that has a connection")
	}
	if _, name := s.dial(); name != "b" {
		t.Errorf("got %q; want the instance that is left", name)
	}
	c.Close()
	if err := s.Settle(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

// TestPortsOfOthers has another program on the port, which goes away.
func TestPortsOfOthers(t *testing.T) {
	s := newPortSite(t, PortsConfig{Retry: 10 * time.Millisecond})
	other, err := net.Listen("tcp", s.addr())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Usable(s.port); err == nil {
		t.Error("a port is usable that another program has")
	}
	s.lead(tcpApp(t, "a"))
	if err := <-s.reports; err == nil || s.Usable(s.port) == nil {
		t.Errorf("got %v; want to be told that the port is taken", err)
	}
	other.Close()
	if err := <-s.reports; err != nil || s.Usable(s.port) != nil {
		t.Errorf("got %v; want to be told that it is ours now", err)
	}
	if _, name := s.dial(); name != "a" {
		t.Errorf("got %q", name)
	}
}

func TestPortsHaveLimits(t *testing.T) {
	s := newPortSite(t, PortsConfig{MaxConnections: 1})
	s.lead(tcpApp(t, "a"))
	first, _ := s.dial()
	second, err := net.Dial("tcp", s.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	second.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := second.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Error("a second connection is served beside the one there may be")
	}
	first.Close()
	second.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := second.Read(make([]byte, 1)); err != nil {
		t.Errorf("got %v; want its turn", err)
	}
}

func TestPortsDrain(t *testing.T) {
	s := newPortSite(t, PortsConfig{})
	s.lead(tcpApp(t, "a"))
	c, _ := s.dial()
	s.stop()
	s.closed()
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Drain(short); err == nil {
		t.Error("nothing was waited for")
	}
	c.Close()
	if err := s.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

// A socket that was kept from before is served as it is, with who waits in it;
// one that no route has is let go of, and so is one elsewhere. What is listened
// at is kept, until its route ends, and not when listening does.
func TestPortsAreHandedOver(t *testing.T) {
	listener := func(address string) *net.TCPListener {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l.(*net.TCPListener)
	}
	wanted, idle, elsewhere := listener("127.0.0.1:0"), listener("127.0.0.1:0"), listener("127.0.0.2:0")
	number := func(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }
	waiting, err := net.Dial("tcp", wanted.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	kept, forgot := make(chan int, 10), make(chan int, 10)
	s := &portSite{t: t, port: number(wanted)}
	s.Router = New(Config{Log: slog.New(slog.DiscardHandler)})
	s.lead(tcpApp(t, "a"))
	s.Ports = NewPorts(s.Router, PortsConfig{Host: "127.0.0.1", Held: map[int]net.Listener{number(wanted): wanted, number(idle): idle, number(elsewhere): elsewhere},
		Keep: func(port int, _ *net.TCPListener) { kept <- port }, Forget: func(port int) { forgot <- port }})
	if got := <-forgot; got != number(elsewhere) {
		t.Errorf("forgot %d; want that of another address, %d", got, number(elsewhere))
	}
	live, end := context.WithCancel(t.Context())
	ctx, stop := context.WithCancel(live)
	ended := make(chan error)
	go func() { ended <- s.Run(ctx, live) }()
	if name, err := bufio.NewReaderSize(waiting, 16).ReadString('\n'); err != nil || name != "a\n" {
		t.Errorf("who waited got %q, %v", name, err)
	}
	if got := <-kept; got != s.port {
		t.Errorf("kept %d; want %d", got, s.port)
	}
	if got := <-forgot; got != number(idle) {
		t.Errorf("forgot %d; want that without a route, %d", got, number(idle))
	}
	s.Set(Table{})
	if got := <-forgot; got != s.port {
		t.Errorf("forgot %d; want that whose route ended, %d", got, s.port)
	}
	s.closed()
	s.lead(tcpApp(t, "a"))
	<-kept
	stop()
	s.closed()
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if len(forgot) > 0 {
		t.Errorf("forgot %d when listening ended", <-forgot)
	}
}
