package lrp

import (
	"errors"
	"slices"
	"testing"
)

// The cases are those of executor: envoyconfig/config_test.go and
// depot/containerstore/proxy_config_handler.go.
func TestMapPorts(t *testing.T) {
	for _, c := range []struct {
		ports []uint16
		want  []PortMapping
	}{
		{nil, nil},
		{[]uint16{9090}, []PortMapping{{9090, 61001}}},
		{[]uint16{8080}, []PortMapping{{8080, 61001}, {8080, 61443}}},
		{[]uint16{2222, 8080}, []PortMapping{{2222, 61001}, {8080, 61002}, {8080, 61443}}},
		{[]uint16{8080, 8080, 9090}, []PortMapping{{8080, 61001}, {8080, 61443}, {9090, 61002}}},
		{[]uint16{61001, 8080}, []PortMapping{{61001, 61002}, {8080, 61003}, {8080, 61443}}},
		{[]uint16{8080, 61002, 61003}, []PortMapping{{8080, 61001}, {8080, 61443}, {61002, 61004}, {61003, 61005}}},
	} {
		if got, err := MapPorts(c.ports); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: got %v, %v; want %v", c.ports, got, err, c.want)
		}
	}
	if got, err := MapPorts([]uint16{8080, 61443}); !errors.Is(err, ErrPortReserved) {
		t.Errorf("got %v, %v; want an error", got, err)
	}
	many := make([]uint16, 5000)
	for n := range many {
		many[n] = uint16(n + 1)
	}
	if got, err := MapPorts(many); !errors.Is(err, ErrNoTLSPort) {
		t.Errorf("got %d, %v; want an error", len(got), err)
	}
	got, err := MapPorts(many[:443]) // 61001 … 61442 are 442
	if last := got[len(got)-1]; err != nil || last != (PortMapping{443, 61444}) {
		t.Errorf("got %v, %v; want 61443 left out", last, err)
	}
}
