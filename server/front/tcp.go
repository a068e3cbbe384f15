package front

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"

	"cupola/server/reconcile"
	"cupola/server/router"
	"cupola/server/systemd"
	"cupola/store/cf"
)

// ParseTCP splits the address of TCP routes into host and ports; there are none
// where it is "off".
func ParseTCP(address string) (host string, ports cf.PortRanges, err error) {
	if address == "off" {
		return "", nil, nil
	}
	i := strings.LastIndexByte(address, ':')
	if i < 0 {
		return "", nil, errors.New("it has no port")
	}
	if ports, err = cf.ParsePortRanges(address[i+1:]); err != nil {
		return "", nil, err
	}
	return strings.Trim(address[:i], "[]"), ports, nil
}

// exampleTCP is an address of TCP routes with the range of cf-deployment's default-tcp.
const exampleTCP = "127.0.0.1:1024-1123"

// CheckTCP says what is wrong with --tcp.
func CheckTCP(address string) error {
	if _, _, err := ParseTCP(address); err != nil {
		return fmt.Errorf("invalid --tcp %q: give an address, like %s: %w", address, exampleTCP, err)
	}
	return nil
}

// TCP is what listens for TCP routes.
type TCP struct {
	Address string // as ParseTCP reads it
	Router  *router.Router
	Held    map[string]net.Listener // by the names that the service manager knows
	Manager systemd.Manager
	Say     func(appGUID, text string) // in the app's log
	Log     *slog.Logger
}

// Open makes the ports; nil if TCP routes are disabled.
func (t *TCP) Open() (*router.Ports, cf.PortRanges) {
	host, ports, _ := ParseTCP(t.Address) // the configuration's check has read it
	if len(ports) == 0 {
		for number, l := range t.held() {
			t.forget(number)
			l.Close()
		}
		return nil, nil
	}
	return router.NewPorts(t.Router, router.PortsConfig{Host: host, Linger: reconcile.DrainTime, Report: t.report, Held: t.held(), Keep: t.keep, Forget: t.forget}), ports
}

// portPrefix begins the names by which the service manager keeps the sockets of
// TCP routes. They are not sockets of units, since a port is listened at only
// while a route has it.
const portPrefix = "tcp-"

// held are the sockets that the daemon before this one had.
func (t *TCP) held() map[int]net.Listener {
	held := map[int]net.Listener{}
	for name, l := range t.Held {
		if number, ok := PortOf(name); ok {
			held[number] = l
		}
	}
	return held
}

// PortOf is the port of a socket that was kept under a name.
func PortOf(name string) (number int, ok bool) {
	text, ok := strings.CutPrefix(name, portPrefix)
	number, err := strconv.Atoi(text)
	return number, ok && err == nil && number > 0 && number < 1<<16
}

func (t *TCP) keep(number int, l *net.TCPListener) {
	if err := t.Manager.Keep(portPrefix+strconv.Itoa(number), l); err != nil {
		t.Log.Warn("socket of a tcp port is not kept: connections are refused when the daemon restarts", "port", number, "err", err)
	}
}

func (t *TCP) forget(number int) {
	if err := t.Manager.Forget(portPrefix + strconv.Itoa(number)); err != nil {
		t.Log.Warn("socket of a tcp port is still kept", "port", number, "err", err)
	}
}

// report tells an app's log whether its route's port works.
func (t *TCP) report(port int, appGUID string, err error) {
	text := fmt.Sprintf("TCP route: listening at port %d", port)
	if err != nil {
		text = fmt.Sprintf("TCP route: cannot listen at port %d, which is tried again: %v", port, err)
	}
	t.Say(appGUID, text)
}
