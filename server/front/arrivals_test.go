package front

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"
)

// Who connected before the listener was closed is answered, also when the
// request comes after.
func TestArrivalsAreAnswered(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }), ReadHeaderTimeout: time.Minute}
	var a arrivals
	a.watch(srv)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for deadline := time.Now().Add(time.Minute); ; {
		a.mu.Lock()
		n := len(a.conns)
		a.mu.Unlock()
		if n == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the connection was not accepted")
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	<-served
	waited := make(chan struct{})
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a.wait(ctx)
		if err := srv.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		close(waited)
	}()
	if _, err := fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("got %v, %v", res, err)
	}
	<-waited
	a.wait(t.Context()) // there are none
}
