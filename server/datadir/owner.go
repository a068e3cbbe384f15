package datadir

import (
	"crypto/sha256"
	"encoding/hex"

	"cupola/server/doctor"
)

// Owner names the kernel objects of a data directory's daemon.
type Owner = doctor.Owner

// OwnerOf tells the kernel objects of a data directory's daemon from those of
// another one on the machine. The default directory's are fixed; another one's
// follow from its path, so that the next daemon with it finds them again. The
// subnet alone is one that was free.
func OwnerOf(dataDir string) Owner {
	o := Owner{DataDir: dataDir, Table: "cupola", Cgroup: "cupola", LinkPrefix: "cup"}
	if dataDir != Default {
		o.Table = "cupola-" + shortHash(dataDir)
		o.Cgroup, o.LinkPrefix = o.Table, "c"+shortHash(dataDir)
	}
	var err error
	if o.Subnet, err = keptSubnet(dataDir); err != nil {
		o.Subnet = subnets(dataDir)[0]
	}
	return o
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:3])
}
