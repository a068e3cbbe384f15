package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cupola/server/logcache"
	"cupola/server/router"
	"cupola/store/cf"
)

// DefaultTCP is where routes with a port are listened for: the range of
// cf-deployment's default-tcp.
const DefaultTCP = "127.0.0.1:1024-1123"

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

// checkTCP says what is wrong with --tcp.
func (c *Config) checkTCP() error {
	if _, _, err := c.tcp(); err != nil {
		return fmt.Errorf("--tcp %q is no address like %s: %w", c.TCP, DefaultTCP, err)
	}
	return nil
}

// openPorts makes what listens for TCP routes, where there are to be any.
func (h *house) openPorts() {
	host, ports, _ := h.tcp() // normalize has read it
	if len(ports) == 0 {
		return
	}
	h.tcpPorts = ports
	h.ports = router.NewPorts(h.router, router.PortsConfig{Host: host, Linger: drainTime, Report: h.reportPort})
}

// servePorts listens until ctx ends; connections go on until live ends.
func (h *house) servePorts(ctx, live context.Context) error {
	if h.ports == nil {
		return nil
	}
	return h.ports.Run(ctx, live)
}

// portUsable is nil when this machine listens at a port for routes, or can.
func (h *house) portUsable(port int) error {
	if h.ports == nil {
		return nil
	}
	return h.ports.Usable(port)
}

// reportPort tells an app's log whether its route's port works.
func (h *house) reportPort(port int, appGUID string, err error) {
	text := fmt.Sprintf("TCP route: listening at port %d", port)
	if err != nil {
		text = fmt.Sprintf("TCP route: cannot listen at port %d, which is tried again: %v", port, err)
	}
	h.log(logcache.Envelope{Timestamp: time.Now(), SourceID: appGUID, InstanceID: "0",
		Tags: map[string]string{"source_type": "RTR"}, Payload: []byte(text)})
}
