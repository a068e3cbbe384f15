package loopback

import (
	"fmt"
	"net"
	"slices"
	"testing"
)

func TestFreePorts(t *testing.T) {
	ports := FreePorts(t, 20)
	slices.Sort(ports)
	if len(slices.Compact(slices.Clone(ports))) != 20 || ports[0] < first || ports[19] >= end {
		t.Errorf("got %v; want 20 different ports from %d to %d", ports, first, end-1)
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", ports[0]))
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
