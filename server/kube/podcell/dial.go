package podcell

import (
	"context"
	"errors"
	"net"
	"time"

	"cupola/runtime/tunnel"
	"cupola/server/cells"
)

const (
	directTime = time.Second // how long a pod may take to answer at its address, while it is not known whether pods do
	provenTime = time.Minute // how long an answer shows that pods are reached at their addresses
)

// newTunnel is the tunnel of a cell, which its agent opens.
func newTunnel(c *Cell) *tunnel.Client {
	return &tunnel.Client{Open: c.agent.open, Up: c.agent.up, Down: c.agent.down}
}

// At reports whether an address is that of a container of the cell.
func (c *Cell) At(ip string) bool {
	_, ok := c.places.Load(ip)
	return ok
}

// Known reports whether the addresses of all pods are known.
func (c *Cell) Known() bool { return c.knows() }

// Dial connects to a port of a container: at its address, or by the tunnel.
func (c *Cell) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	switch c.agent.mode {
	case cells.TunnelAlways:
		return c.dialTunnel(ctx, address)
	case cells.TunnelNever:
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	if c.agent.isUsed() {
		conn, err := c.dialTunnel(ctx, address)
		if errors.Is(err, tunnel.ErrDown) && ctx.Err() == nil {
			if direct, directErr := c.dialDirect(ctx, network, address); directErr == nil {
				c.useTunnel(false, err)
				return direct, nil
			}
		}
		return conn, err
	}
	conn, err := c.dialDirect(ctx, network, address)
	if err == nil || c.provenAt(time.Now()) || ctx.Err() != nil {
		return conn, err
	}
	c.agent.need()
	if by, tunnelErr := c.dialTunnel(ctx, address); tunnelErr == nil {
		c.useTunnel(true, err)
		return by, nil
	}
	return nil, err
}

func (c *Cell) dialTunnel(ctx context.Context, address string) (net.Conn, error) {
	conn, err := c.tunnel.Dial(ctx, address)
	if err != nil {
		c.cfg.Log.Debug("connection by the tunnel failed", "cell", c.pods.Cell, "address", address, "err", err)
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err} // the router tries another instance
	}
	c.tunnelled.Store(time.Now().UnixNano())
	return conn, nil
}

// dialDirect connects to an address of a pod, and notes whether it answers.
func (c *Cell) dialDirect(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{}
	if !c.provenAt(time.Now()) {
		dialer.Timeout = directTime
	}
	conn, err := dialer.DialContext(ctx, network, address)
	if err == nil { // who refuses may be a firewall
		c.proven.Store(time.Now().UnixNano())
	}
	return conn, err
}

// provenAt reports whether a pod has answered at its address lately.
func (c *Cell) provenAt(now time.Time) bool {
	return now.Sub(time.Unix(0, c.proven.Load())) < provenTime
}

// useTunnel decides how pods are reached from now on.
func (c *Cell) useTunnel(by bool, why error) {
	c.agent.mu.Lock()
	was := c.agent.by
	c.agent.by = by
	c.agent.mu.Unlock()
	c.agent.wakeUp()
	switch {
	case was == by:
	case by:
		c.cfg.Log.Info("pods of the cluster do not answer at their addresses: they are reached by the tunnel", "cell", c.pods.Cell, "err", why)
	default:
		c.cfg.Log.Info("pods of the cluster answer at their addresses: they are not reached by the tunnel", "cell", c.pods.Cell, "err", why)
	}
}

// reachTime is how long an instance is not routed to while no pod can be connected to.
const reachTime = 30 * time.Second

// hasWay reports whether pods are connected to, as was seen lately.
func (c *Cell) hasWay() bool {
	switch {
	case c.agent.mode == cells.TunnelNever:
		return true
	case c.agent.mode == cells.TunnelAlways || c.agent.isUsed():
		return time.Since(time.Unix(0, c.tunnelled.Load())) < provenTime
	}
	return c.provenAt(time.Now())
}

// findWay finds out how pods are reached, by one that is ready, and then has all
// instances looked at once more.
func (c *Cell) findWay(address string) {
	if !c.finding.CompareAndSwap(false, true) {
		return
	}
	c.inBackground(func(ctx context.Context) {
		defer c.wakeAll()
		defer c.finding.Store(false)
		ctx, cancel := context.WithTimeout(ctx, attemptTime)
		defer cancel()
		if conn, err := c.Dial(ctx, "tcp", address); err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-time.After(directTime):
		case <-ctx.Done():
		}
	})
}

func (c *Cell) wakeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.instances {
		i.wakeUp()
	}
}
