package router

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"cupola/test/loopback"
)

// stallLimit is how long a head may take in TestStalledProcess.
const stallLimit = 2 * time.Second

// TestStalledProcess stops the process of a router while the head of a request comes, and
// while that of an answer does, for longer than they may take: what came meanwhile is read.
func TestStalledProcess(t *testing.T) {
	if backend := os.Getenv("ROUTER_BACKEND"); backend != "" {
		serveUntilEOF(t, backend)
		return
	}
	t.Parallel()
	asked, answer := make(chan bool), make(chan bool)
	backend := loopback.Serve(t, func(conn net.Conn) {
		defer conn.Close()
		for in := bufio.NewReader(conn); ; {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if req.URL.Path == "/wait" {
				asked <- true
				<-answer
			}
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	router := startStallable(t, backend.String())
	t.Run("request", func(t *testing.T) {
		wantOK(t, router.stall(t, func(net.Conn) {
			time.Sleep(patience) // it is accepted by then
		}, func(conn net.Conn) { fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: app.test\r\n\r\n") }))
	})
	t.Run("answer", func(t *testing.T) {
		wantOK(t, router.stall(t, func(conn net.Conn) {
			fmt.Fprint(conn, "GET /wait HTTP/1.1\r\nHost: app.test\r\n\r\n")
			<-asked
			time.Sleep(3 * patience) // the client is watched by then
		}, func(net.Conn) { answer <- true }))
	})
}

func serveUntilEOF(t *testing.T, backend string) {
	limits := Timeouts{RequestHeader: stallLimit, ResponseHeader: stallLimit}
	r := New(Config{Log: slog.New(slog.DiscardHandler), Timeouts: limits})
	r.Set(Table{Routes: []Route{route("app.test", endpointOf(backend, "app", 0))}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for range runtime.GOMAXPROCS(0) { // a busy process sees that a deadline has passed before it sees what has come
		go func() {
			for {
				runtime.Gosched()
			}
		}()
	}
	fmt.Println(l.Addr())
	server := NewServer(r, r.config.Log, limits)
	go server.Serve(ahead(r, Guard(l, nil, r.config.Gate), Direct{}))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// stallable is a router in a process that can be stopped.
type stallable struct {
	*os.Process
	addr string
}

func startStallable(t *testing.T, backend string) stallable {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestStalledProcess$")
	cmd.Env = append(os.Environ(), "ROUTER_BACKEND="+backend)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		stdin.Close()
		_ = cmd.Wait()
	})
	addr, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return stallable{cmd.Process, strings.TrimSpace(addr)}
}

// stall connects and calls before, stops the process, calls meanwhile, and lets the process
// go on once the time for a head is over. Where the machine is too busy for that it tries
// again.
func (s stallable) stall(t *testing.T, before, meanwhile func(net.Conn)) net.Conn {
	t.Helper()
	for {
		began := time.Now()
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		before(conn)
		if err := s.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		inTime := time.Since(began) < stallLimit/2
		meanwhile(conn)
		time.Sleep(stallLimit)
		if err := s.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if inTime {
			return conn
		}
		t.Log("the machine is too busy: once more")
	}
}

func wantOK(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("got %v, %v; want 200", res, err)
	}
}
