package server

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
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
// follow from its path, so that the next daemon with it finds them again. The
// subnet alone is one that was free.
func names(dataDir string) doctor.Owner {
	o := doctor.Owner{DataDir: dataDir, Table: "cupola", Cgroup: "cupola", LinkPrefix: "cup"}
	if dataDir != DefaultDataDir {
		o.Table = "cupola-" + shortHash(dataDir)
		o.Cgroup, o.LinkPrefix = o.Table, "c"+shortHash(dataDir)
	}
	var err error
	if o.Subnet, err = keptSubnet(dataDir); err != nil {
		o.Subnet = subnets(dataDir)[0]
	}
	return o
}

func (d *daemon) networkConfig() network.Config {
	n := names(d.DataDir)
	return network.Config{Dir: d.path("netns"), Table: n.Table, LinkPrefix: n.LinkPrefix, Subnet: n.Subnet, HostPorts: ports(d.HTTP, d.HTTPS), Names: true, Log: d.Log}
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
