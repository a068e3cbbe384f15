package front

import (
	"log/slog"
	"net"
	"testing"
)

func TestBindSSH(t *testing.T) {
	taken, err := net.Listen("tcp", defaultSSH)
	if err == nil {
		defer taken.Close() // else somebody else has it, which will do as well
	}
	var addr string
	b := Binder{SSH: &addr, Log: slog.New(slog.DiscardHandler)}
	l, err := b.ssh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if addr != l.Addr().String() || addr == defaultSSH {
		t.Errorf("got %q; want a free port's address", addr)
	}
	again := Binder{SSH: &addr}
	if l, err := again.ssh(t.Context()); err == nil {
		l.Close()
		t.Error("a port that was asked for was replaced by another")
	}
	off := "off"
	none := Binder{SSH: &off}
	if l, err := none.ssh(t.Context()); l != nil || err != nil {
		t.Errorf("got %v, %v; want no listener", l, err)
	}
}
