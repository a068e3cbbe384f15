package network

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Stray lists links and pinned namespaces that are neither a container's nor
// made ahead for one. A link stays for a moment after its namespace: what is
// stray for longer leaked.
func (n *Network) Stray() ([]string, error) {
	links, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	files, err := os.ReadDir(filepath.Join(n.cfg.Dir, "ns"))
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var stray []string
	for _, l := range links {
		number, ok := strings.CutPrefix(l.Name, n.cfg.LinkPrefix)
		if index, err := strconv.Atoi(number); ok && err == nil && !n.used[index] {
			stray = append(stray, "link "+l.Name)
		}
	}
	for _, f := range files {
		if index, err := strconv.Atoi(f.Name()); err != nil || !n.used[index] {
			stray = append(stray, "network namespace "+filepath.Join(n.cfg.Dir, "ns", f.Name()))
		}
	}
	slices.Sort(stray)
	return stray, nil
}
