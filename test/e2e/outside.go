package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Outside stands for all other machines: a separate network namespace, joined
// to this one by a link. One address in it is public, one private.
type Outside struct {
	number          net.Listener // no other test takes the same networks while it is open
	link            string       // this machine's end
	gateway         net.IP
	Public, Private net.IP
	listening       []net.Listener
	web             []net.Listener // on webPort of both addresses, for serve
	echoing         []net.PacketConn
}

// NewOutside takes connections on port 80 of both addresses, and sends back what
// comes to UDP ports 9000 and 9001 of the private one, until the test ends.
func NewOutside(t *testing.T) *Outside {
	t.Helper()
	number, n := freeNumber(t)
	// From the benchmarking range of RFC 2544, which security groups take for
	// public.
	o := &Outside{
		number:  number,
		link:    fmt.Sprintf("e2e%dx%d", os.Getpid()%1_000_000, n),
		gateway: net.IPv4(198, 19, n, 1), Public: net.IPv4(198, 19, n, 2), Private: net.IPv4(172, 30, n, 2),
	}
	t.Cleanup(o.close)
	made := make(chan error)
	go func() {
		// The thread ends with the goroutine; the listeners keep the namespace.
		runtime.LockOSThread()
		made <- o.furnish()
	}()
	if err := errors.Join(<-made, o.join()); err != nil {
		t.Fatal(err)
	}
	for _, l := range o.listening {
		go Accept(l)
	}
	for _, c := range o.echoing {
		go echo(c)
	}
	return o
}

// freeNumber returns a number of networks that no other test uses, of this process
// or another, until the listener is closed: its address contains the number.
func freeNumber(t *testing.T) (net.Listener, byte) {
	t.Helper()
	for first, i := rand.IntN(256), 0; i < 256; i++ {
		n := byte(first + i)
		if l, err := net.Listen("unix", fmt.Sprintf("@cupola-e2e-outside-%d", n)); err == nil {
			return l, n
		}
	}
	t.Fatal("all 256 numbers of networks are taken")
	return nil, 0
}

// WebPort is the port of HTTP servers outside.
const WebPort = "8000"

// Serve answers requests at WebPort of both addresses.
func (o *Outside) Serve(t testing.TB, h http.Handler) (public, private string) {
	t.Helper()
	for _, l := range o.web {
		srv := httptest.NewUnstartedServer(h)
		srv.Listener.Close()
		srv.Listener = l
		srv.Start()
		t.Cleanup(srv.Close)
	}
	url := func(ip net.IP) string { return "http://" + net.JoinHostPort(ip.String(), WebPort) }
	return url(o.Public), url(o.Private)
}

// Accept closes every connection.
func Accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		c.Close()
	}
}

// echo sends everything back.
func echo(c net.PacketConn) {
	for b := make([]byte, 1500); ; {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		_, _ = c.WriteTo(b[:n], from)
	}
}

// furnish makes the namespace that of the thread.
func (o *Outside) furnish() error {
	here, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer here.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: o.link, PeerNamespace: netlink.NsFd(here.Fd())}
	veth.Name = "out"
	if err := netlink.LinkAdd(veth); err != nil {
		return err
	}
	if err := up(veth.Name, o.Public, 24, &netlink.Route{Gw: o.gateway}); err != nil {
		return err
	}
	if err := up(veth.Name, o.Private, 32, nil); err != nil {
		return err
	}
	for _, ip := range []net.IP{o.Public, o.Private} {
		l, err := net.Listen("tcp4", ip.String()+":80")
		if err != nil {
			return err
		}
		o.listening = append(o.listening, l)
	}
	for _, ip := range []net.IP{o.Public, o.Private} {
		l, err := net.Listen("tcp4", net.JoinHostPort(ip.String(), WebPort))
		if err != nil {
			return err
		}
		o.web = append(o.web, l)
	}
	for _, port := range []string{":9000", ":9001"} {
		c, err := net.ListenPacket("udp4", o.Private.String()+port)
		if err != nil {
			return err
		}
		o.echoing = append(o.echoing, c)
	}
	return nil
}

// join makes this machine's end the way to both addresses.
func (o *Outside) join() error {
	return up(o.link, o.gateway, 24, &netlink.Route{Dst: &net.IPNet{IP: o.Private, Mask: net.CIDRMask(32, 32)}})
}

// up gives a link an address and, but for nil, a route.
func up(name string, ip net.IP, bits int, route *netlink.Route) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: ip.To4(), Mask: net.CIDRMask(bits, 32)}}
	if err := errors.Join(netlink.AddrAdd(link, addr), netlink.LinkSetUp(link)); err != nil || route == nil {
		return err
	}
	route.LinkIndex = link.Attrs().Index
	return netlink.RouteAdd(route)
}

func (o *Outside) close() {
	for _, l := range append(o.listening, o.web...) {
		l.Close()
	}
	for _, c := range o.echoing {
		c.Close()
	}
	if link, err := netlink.LinkByName(o.link); err == nil {
		_ = netlink.LinkDel(link)
	}
	o.number.Close()
}
