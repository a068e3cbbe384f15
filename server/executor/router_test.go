package executor

import (
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"

	"cupola/server/config"
	"cupola/server/datadir"
)

func TestWhereTheRouterListens(t *testing.T) {
	host := (&datadir.Dir{}).Owner().Subnet.Addr().Next().String()
	for _, c := range []struct {
		http, https string
		want        []string
	}{
		{"127.0.0.1:8080", "off", []string{"127.0.0.1:8080", host + ":8080"}},
		{"192.0.2.1:80", "0.0.0.0:443", []string{"0.0.0.0:443", "192.0.2.1:80", host + ":80"}},
		{":80", "[::]:443", []string{"[::]:443", "[::]:80"}},
	} {
		e := &Executor{Dir: &datadir.Dir{}}
		e.Config = &config.Config{HTTP: c.http, HTTPS: c.https}
		all, _ := e.routerListens()
		var got []string
		for _, at := range all {
			got = append(got, at.String())
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("--http %s --https %s: got %q; want %q", c.http, c.https, got, c.want)
		}
	}
}

// TestOthersDoNotGetInside connects from an address that is no container's, and from one that is.
func TestOthersDoNotGetInside(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	inside := insideListener{l, netip.MustParsePrefix("127.0.0.2/32")}
	defer inside.Close()
	dial := func(from string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := d.Dial("tcp4", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	other, container := dial("127.0.0.1"), dial("127.0.0.2")
	c, err := inside.Accept()
	if err != nil || c.RemoteAddr().String() != container.LocalAddr().String() {
		t.Fatalf("got a connection from %v, %v; want the container's", c.RemoteAddr(), err)
	}
	defer c.Close()
	if _, err := other.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the other connection: got %v; want its end", err)
	}
}
