package network

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Use is a block of addresses of this machine that somebody has, or a way to
// one.
type Use struct {
	Prefix netip.Prefix
	// Link is the device that leads to it; "" where a route has none.
	Link string
	// Cupola is true for prefixes of Networks of any configuration.
	Cupola bool
	// label is that of a Network's own address; "" for everything else.
	label string
}

// String is the block and its link.
func (u Use) String() string {
	if u.Link == "" {
		return u.Prefix.String()
	}
	return u.Prefix.String() + " on " + u.Link
}

// Of reports whether it is the Network's whose links' names begin with prefix.
func (u Use) Of(linkPrefix string) bool {
	if u.label != "" {
		return u.label == addressLabel(linkPrefix)
	}
	number, ok := strings.CutPrefix(u.Link, linkPrefix)
	_, err := strconv.Atoi(number)
	return u.Cupola && ok && err == nil
}

// The labels of Networks' own addresses, which tell them from what others have
// on the loopback. That of former versions does not tell whose it is.
const (
	labelPrefix = "lo:cu-"
	formerLabel = "lo:cupola"
)

func addressLabel(linkPrefix string) string { return labelPrefix + linkPrefix }

// ErrTaken says that another program has a Network's address.
var ErrTaken = errors.New("address of containers' host is another program's")

// leastBits are those of blocks that are in the way. Wider ones are ways to the
// world, like a default route's halves.
const leastBits = 8

// Want says which addresses a Network wants for its containers.
type Want struct {
	LinkPrefix string
	// Kept is what it had before; the zero value is nothing.
	Kept netip.Prefix
	// Live is true if containers have addresses of Kept, which then stays.
	Live bool
	// Candidates are what it would take, the best first.
	Candidates []netip.Prefix
}

// Pick chooses a subnet that no one else uses. Where containers keep Kept alive
// it is that one, whatever is in its way, which is returned as well.
func (w Want) Pick(uses []Use) (subnet netip.Prefix, inWay []Use, err error) {
	if w.Live {
		return w.Kept, w.inWay(w.Kept, uses), nil
	}
	candidates := w.Candidates
	if w.Kept.IsValid() {
		candidates = append([]netip.Prefix{w.Kept}, candidates...)
	}
	for n, c := range candidates {
		found := w.inWay(c, uses)
		if len(found) == 0 {
			return c, nil, nil
		}
		if n == 0 {
			err = fmt.Errorf("no addresses are free for containers: %s overlaps %s, and so it is with %d other blocks", c, found[0], len(candidates)-1)
		}
	}
	return netip.Prefix{}, nil, err
}

func (w Want) inWay(subnet netip.Prefix, uses []Use) (found []Use) {
	for _, u := range uses {
		former := u.label == formerLabel && subnet == w.Kept && u.Prefix.Addr() == subnet.Addr().Next()
		if u.Prefix.Bits() >= leastBits && u.Prefix.Overlaps(subnet) && !u.Of(w.LinkPrefix) && !former {
			found = append(found, u)
		}
	}
	return found
}
