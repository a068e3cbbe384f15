package server

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/netip"
	"strconv"

	"cupola/runtime/network"
	"cupola/server/doctor"
)

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:3])
}

// names tells the kernel objects of a data directory's daemon from those of
// another one on the machine. The default directory's are fixed; another one's
// follow from its path, so that the next daemon with it finds them again.
func names(dataDir string) doctor.Owner {
	if dataDir == DefaultDataDir {
		return doctor.Owner{DataDir: dataDir, Table: "cupola", Cgroup: "cupola", LinkPrefix: "cup", Subnet: netip.MustParsePrefix("10.251.0.0/16")}
	}
	sum := sha256.Sum256([]byte(dataDir))
	name := "cupola-" + shortHash(dataDir)
	return doctor.Owner{DataDir: dataDir, Table: name, Cgroup: name, LinkPrefix: "c" + shortHash(dataDir),
		Subnet: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 128 + sum[3]%100, 0, 0}), 16)}
}

func (h *house) networkConfig() network.Config {
	n := names(h.DataDir)
	return network.Config{Dir: h.path("netns"), Table: n.Table, LinkPrefix: n.LinkPrefix, Subnet: n.Subnet, HostPorts: ports(h.HTTP, h.HTTPS), Names: true, Log: h.Log}
}

// ports are those of the addresses that have one.
func ports(addrs ...string) (all []uint16) {
	for _, a := range addrs {
		_, port, err := net.SplitHostPort(a)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseUint(port, 10, 16); err == nil {
			all = append(all, uint16(n))
		}
	}
	return all
}
