package server

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"

	"cupola/runtime/network"
)

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:3])
}

// networkConfig gives each daemon of a machine its own names and addresses.
// The default data directory's are fixed; another one's follow from its path,
// so that the next daemon with it finds them again.
func (h *house) networkConfig() network.Config {
	c := network.Config{Dir: h.path("netns"), Table: h.name(), Log: h.Log}
	if h.DataDir == DefaultDataDir {
		return c
	}
	sum := sha256.Sum256([]byte(h.DataDir))
	c.LinkPrefix = "c" + shortHash(h.DataDir)
	c.Subnet = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 128 + sum[3]%100, 0, 0}), 16)
	return c
}
