package cell

import (
	"cupola/runtime/network"
)

// Connections counts the TCP connections from outside that containers have at the ports given, by the containers'
// GUIDs. One whose processes have ended is not in the answer. It asks the kernel, not the servers.
func (c *Cell) Connections(ports map[string][]uint16) (map[string]int, error) {
	states, err := c.cfg.Containers.List()
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, s := range states {
		at, ok := ports[s.ID]
		if !ok || !s.Alive {
			continue
		}
		if n, err := network.Connections(s.PID, at); err == nil { // or it has just ended
			counts[s.ID] = n
		}
	}
	return counts, nil
}
