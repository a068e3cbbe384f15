package network

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
)

// Another program may change at any time what containers' network needs of the
// machine: it reloads its firewall, or turns off IP forwarding.
const watchInterval = 3 * time.Second

// How long firewalld is not asked again: its command takes a third of a second of
// a processor. It loses what it took when it reads its configuration.
const (
	pauseTaken   = 10 * time.Second
	pauseRefused = time.Minute
)

// watch keeps what the network needs of the machine, and logs each kind of failure once.
func (n *Network) watch(ctx context.Context) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	var last string
	for {
		text := ""
		if err := n.keep(ctx); err != nil && ctx.Err() == nil {
			text = err.Error()
		}
		if text != "" && text != last {
			n.log.Warn("what containers' network needs of this machine could not be set", "err", text)
		}
		last = text
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// keep sets once more what another program took away or never allowed.
func (n *Network) keep(ctx context.Context) error {
	restored, err := n.filter.restore()
	if restored && err == nil {
		n.log.Warn("another program deleted the firewall rules of containers, which were set again", "table", n.cfg.Table)
	}
	changed, refused, admitErr := n.filter.admit()
	if len(changed) > 0 && admitErr == nil {
		n.log.Info("another firewall dropped what containers send and get; a rule that accepts it was added", "chains", strings.Join(changed, ", "))
	}
	err = errors.Join(err, admitErr, n.reconnect())
	if refused {
		err = errors.Join(err, n.askFirewalld(ctx))
	}
	if n.forwards.Load() {
		err = errors.Join(err, n.forward())
	}
	return err
}

// askFirewalld makes firewalld accept packets from containers.
func (n *Network) askFirewalld(ctx context.Context) error {
	if time.Now().Before(n.ask) {
		return n.refused
	}
	if n.refused = askFirewalld(ctx, addSource, n.cfg.Subnet); n.refused != nil {
		n.ask = time.Now().Add(pauseRefused)
		return n.refused
	}
	n.ask = time.Now().Add(pauseTaken)
	n.log.Info("firewalld refused what containers send; their subnet is in its zone that accepts all", "zone", trustedZone, "subnet", n.cfg.Subnet)
	return nil
}

// leaveFirewalld takes the subnet out of firewalld's zone.
func (n *Network) leaveFirewalld(ctx context.Context) error {
	_, trusts, err := n.filter.firewalld()
	if err != nil || !trusts {
		return err
	}
	return askFirewalld(ctx, removeSource, n.cfg.Subnet)
}

// reconnect gives the host the gateway's address again if another program took it
// away: with it the kernel drops the routes to containers.
func (n *Network) reconnect() error {
	fresh, err := n.wires.claim(n.cfg.LinkPrefix)
	if err != nil || !fresh {
		return err
	}
	n.log.Warn("another program removed the address by which containers reach this machine; it was set again", "address", n.wires.gateway)
	n.mu.Lock()
	slots := slices.AppendSeq(slices.Clone(n.ready), maps.Values(n.slots))
	n.mu.Unlock()
	var errs []error
	for _, s := range slots {
		err := n.wires.outside(s)
		if gone := (netlink.LinkNotFoundError{}); !errors.As(err, &gone) { // released meanwhile
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
