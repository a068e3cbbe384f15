package server

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
	c := Config{Log: slog.New(slog.DiscardHandler)}
	l, err := bindSSH(t.Context(), &c)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if c.SSH != l.Addr().String() || c.SSH == defaultSSH {
		t.Errorf("got %q; want a free port's address", c.SSH)
	}
	again := Config{SSH: c.SSH}
	if l, err := bindSSH(t.Context(), &again); err == nil {
		l.Close()
		t.Error("a port that was asked for was replaced by another")
	}
	none := Config{SSH: "off"}
	if l, err := bindSSH(t.Context(), &none); l != nil || err != nil {
		t.Errorf("got %v, %v; want no listener", l, err)
	}
}
