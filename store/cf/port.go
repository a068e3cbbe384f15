package cf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// PortRanges are the ports of a router group; none means no group.
type PortRanges []PortRange

// PortRange is the ports from First to Last, both included.
type PortRange struct{ First, Last int }

// ParsePortRanges reads ranges as Cloud Foundry's routing API writes them:
// "1024-1033,2000".
func ParsePortRanges(text string) (ranges PortRanges, err error) {
	for part := range strings.SplitSeq(text, ",") {
		first, last, between := strings.Cut(strings.TrimSpace(part), "-")
		r := PortRange{}
		if r.First, err = parsePort(first); err != nil {
			return nil, err
		}
		r.Last = r.First
		if between {
			if r.Last, err = parsePort(last); err != nil {
				return nil, err
			}
		}
		if r.Last < r.First {
			return nil, fmt.Errorf("the range %q ends before it begins", part)
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

func parsePort(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a port from 1 to 65535", text)
	}
	return int(n), nil
}

func (r PortRanges) String() string {
	var parts []string
	for _, x := range r {
		text := strconv.Itoa(x.First)
		if x.Last > x.First {
			text += "-" + strconv.Itoa(x.Last)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ",")
}

// Contain reports whether a port is one of them.
func (r PortRanges) Contain(port int) bool {
	return slices.ContainsFunc(r, func(x PortRange) bool { return x.First <= port && port <= x.Last })
}

// All are the ports, each once, in order.
func (r PortRanges) All() (ports []int) {
	for _, x := range r {
		for p := x.First; p <= x.Last; p++ {
			ports = append(ports, p)
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}
