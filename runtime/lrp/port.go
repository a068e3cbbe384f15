package lrp

import (
	"errors"
	"fmt"

	"cupola/runtime/contract"
)

// PortMapping is a port of a container and a TLS port that leads to it.
type PortMapping struct {
	Port    uint16
	TLSPort uint16 // 0: none
}

// IsInternal reports whether the TLS port is the one for other containers.
func (m PortMapping) IsInternal() bool { return m.TLSPort == contract.InternalTLSPort }

// ExternalTLSPort is the TLS port for others than containers; 0: none.
func (m PortMapping) ExternalTLSPort() uint16 {
	if m.IsInternal() {
		return 0
	}
	return m.TLSPort
}

// ErrPortReserved refuses a container that listens at the TLS port for other
// containers itself (executor: ErrC2CTLSPortIsReserved).
var ErrPortReserved = fmt.Errorf("port %d is reserved for container networking", contract.InternalTLSPort)

// ErrNoTLSPort says that a container has more ports than there are TLS ports.
var ErrNoTLSPort = errors.New("no ports available")

// MapPorts gives each port of a container a TLS port, as Diego's executor does: from
// 61001 on, without those that are ports themselves; port 8080 has a second one, 61443.
func MapPorts(ports []uint16) (mappings []PortMapping, err error) {
	taken := map[uint16]bool{contract.InternalTLSPort: true}
	for _, p := range ports {
		if p == contract.InternalTLSPort {
			return nil, ErrPortReserved
		}
		taken[p] = true
	}
	next, mapped := uint16(contract.FirstTLSPort), map[uint16]bool{}
	for _, p := range ports {
		if mapped[p] {
			continue
		}
		mapped[p] = true
		for taken[next] {
			next++
		}
		if next > contract.LastTLSPort {
			return nil, ErrNoTLSPort
		}
		mappings = append(mappings, PortMapping{p, next})
		next++
		if p == contract.DefaultPort {
			mappings = append(mappings, PortMapping{p, contract.InternalTLSPort})
		}
	}
	return mappings, nil
}

// PlainPorts are mappings without TLS ports.
func PlainPorts(ports []uint16) (mappings []PortMapping) {
	for _, p := range ports {
		mappings = append(mappings, PortMapping{Port: p})
	}
	return mappings
}
