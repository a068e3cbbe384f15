package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"cupola/server/reconcile"
	"cupola/server/router"
	"cupola/store/cf"
)

// tcp splits the address of TCP routes into host and ports; there are none
// where it is "off".
func (c *Config) tcp() (host string, ports cf.PortRanges, err error) {
	if c.TCP == "off" {
		return "", nil, nil
	}
	i := strings.LastIndexByte(c.TCP, ':')
	if i < 0 {
		return "", nil, errors.New("it has no port")
	}
	if ports, err = cf.ParsePortRanges(c.TCP[i+1:]); err != nil {
		return "", nil, err
	}
	return strings.Trim(c.TCP[:i], "[]"), ports, nil
}

// exampleTCP is an address of TCP routes with the range of cf-deployment's default-tcp.
const exampleTCP = "127.0.0.1:1024-1123"

// checkTCP says what is wrong with --tcp.
func (c *Config) checkTCP() error {
	if _, _, err := c.tcp(); err != nil {
		return fmt.Errorf("invalid --tcp %q: give an address, like %s: %w", c.TCP, exampleTCP, err)
	}
	return nil
}

// openPorts makes what listens for TCP routes, where there are to be any.
func (d *daemon) openPorts() {
	host, ports, _ := d.tcp() // normalize has read it
	if len(ports) == 0 {
		for number, l := range d.heldPorts() {
			d.forgetPort(number)
			l.Close()
		}
		return
	}
	d.tcpPorts = ports
	d.ports = router.NewPorts(d.router, router.PortsConfig{Host: host, Linger: reconcile.DrainTime, Report: d.reportPort, Held: d.heldPorts(), Keep: d.keepPort, Forget: d.forgetPort})
}

// portPrefix begins the names by which the service manager keeps the sockets of
// TCP routes. They are no sockets of units, since a port is listened at only
// while a route has it.
const portPrefix = "tcp-"

// heldPorts are the sockets that the daemon before this one had.
func (d *daemon) heldPorts() map[int]net.Listener {
	held := map[int]net.Listener{}
	for name, l := range d.Listeners {
		if number, ok := portOf(name); ok {
			held[number] = l
		}
	}
	return held
}

// portOf is the port of a socket that was kept under a name.
func portOf(name string) (number int, ok bool) {
	text, ok := strings.CutPrefix(name, portPrefix)
	number, err := strconv.Atoi(text)
	return number, ok && err == nil && number > 0 && number < 1<<16
}

func (d *daemon) keepPort(number int, l *net.TCPListener) {
	if err := d.Manager.Keep(portPrefix+strconv.Itoa(number), l); err != nil {
		d.Log.Warn("socket of a tcp port is not kept: connections are refused when the daemon restarts", "port", number, "err", err)
	}
}

func (d *daemon) forgetPort(number int) {
	if err := d.Manager.Forget(portPrefix + strconv.Itoa(number)); err != nil {
		d.Log.Warn("socket of a tcp port is still kept", "port", number, "err", err)
	}
}

// servePorts listens until ctx ends; connections go on until live ends.
func (d *daemon) servePorts(ctx, live context.Context) error {
	if d.ports == nil {
		return nil
	}
	return d.ports.Run(ctx, live)
}

// portUsable is nil when this machine listens at a port for routes, or can.
func (d *daemon) portUsable(port int) error {
	if d.ports == nil {
		return nil
	}
	return d.ports.Usable(port)
}

// reportPort tells an app's log whether its route's port works.
func (d *daemon) reportPort(port int, appGUID string, err error) {
	text := fmt.Sprintf("TCP route: listening at port %d", port)
	if err != nil {
		text = fmt.Sprintf("TCP route: cannot listen at port %d, which is tried again: %v", port, err)
	}
	d.logs.Router(appGUID, text)
}
