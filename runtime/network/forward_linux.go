package network

import (
	"bytes"
	"fmt"
	"os"
)

const forwardControl = "/proc/sys/net/ipv4/ip_forward"

// forward turns on IP forwarding, without which no packet leaves a container.
// It stays on: others may need it by now, and all that share it, like Docker,
// leave it on.
func (n *Network) forward() error {
	now, err := os.ReadFile(forwardControl)
	if err != nil {
		return fmt.Errorf("read IP forwarding: %w", err)
	}
	if !bytes.HasPrefix(now, []byte("0")) {
		return nil
	}
	if err := os.WriteFile(forwardControl, []byte("1"), 0); err != nil {
		return fmt.Errorf("turn on IP forwarding: %w", err)
	}
	n.log.Info("ip forwarding was turned on for containers, and stays on", "sysctl", "net.ipv4.ip_forward=1")
	return nil
}
