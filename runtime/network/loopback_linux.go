package network

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// RaiseLoopback brings up the loopback of this process's network namespace, which is
// down in a new one.
func RaiseLoopback() error {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("bring up the loopback: %w", err)
	}
	return nil
}
