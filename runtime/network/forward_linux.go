package network

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const forwardControl = "/proc/sys/net/ipv4/ip_forward"

// forward turns on IP forwarding, without which no packet leaves a container.
// A file remembers that it was off.
func (n *Network) forward() error {
	now, err := os.ReadFile(forwardControl)
	if err != nil {
		return fmt.Errorf("read IP forwarding: %w", err)
	}
	if !bytes.HasPrefix(now, []byte("0")) {
		return nil
	}
	if err := os.WriteFile(n.forwardMark(), nil, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(forwardControl, []byte("1"), 0); err != nil {
		return fmt.Errorf("turn on IP forwarding: %w", err)
	}
	n.log.Info("ip forwarding was turned on for containers", "sysctl", "net.ipv4.ip_forward=1")
	return nil
}

// unforward turns it off if forward turned it on.
func (n *Network) unforward() error {
	err := os.Remove(n.forwardMark())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.WriteFile(forwardControl, []byte("0"), 0); err != nil {
		return fmt.Errorf("turn off IP forwarding: %w", err)
	}
	n.log.Info("ip forwarding was turned off again", "sysctl", "net.ipv4.ip_forward=0")
	return nil
}

func (n *Network) forwardMark() string { return filepath.Join(n.cfg.Dir, "ip_forward") }
