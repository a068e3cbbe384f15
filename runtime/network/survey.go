package network

import (
	"fmt"
	"net/netip"
)

// Survey lists what Networks of any configuration have in the host's network
// namespace, and what of others conflicts with them.
type Survey struct {
	// Tables are nftables tables whose name starts with "cupola"; Links are the
	// host's ends of containers' links, known by their hardware address.
	Tables, Links []string
	// Addresses are the host's, one of each Network, on the loopback.
	Addresses []Address
	// Rules are those of Networks in chains of others.
	Rules []ForeignRule
	// Closed are the chains of others that drop what none of their rules
	// accepts: Docker's and firewalls'.
	Closed []Closed
}

// Address is the host's of a Network.
type Address struct {
	netip.Addr
	// LinkPrefix begins the names of that Network's links; "" where a former
	// version set the address, which did not tell.
	LinkPrefix string
}

// ForeignRule is a Network's rule in a chain of another program.
type ForeignRule struct {
	Network              string // its table's name
	Family, Table, Chain string // as nft names them
	Handle               uint64
}

func (r ForeignRule) String() string {
	return fmt.Sprintf("%s %s %s handle %d", r.Family, r.Table, r.Chain, r.Handle)
}

// Closed is a chain of another program that drops what none of its rules accepts.
type Closed struct {
	Table, Chain string
	// Firewalld is whether it is firewalld's, which must be asked to accept packets:
	// in the chains of all others, Networks add rules for theirs.
	Firewalld bool
}

func (c Closed) String() string { return c.Table + " " + c.Chain }
