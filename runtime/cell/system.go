package cell

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"

	"cupola/runtime/lrp"
)

// hostname is what Garden calls a container: the last 49 characters of its ID.
func hostname(guid string) string {
	if len(guid) > 49 {
		guid = guid[len(guid)-49:]
	}
	return guid
}

// systemFiles are the files that any container needs to know its name and to
// find others'.
func (b *build) systemFiles() []lrp.File {
	name := hostname(b.guid())
	hosts := fmt.Sprintf("127.0.0.1 localhost\n::1 localhost\n%s %s\n", b.net.Address, strings.Join(append([]string{name}, b.full.Hostnames...), " "))
	return []lrp.File{
		{Path: "/etc/hosts", Content: []byte(hosts)},
		{Path: "/etc/hostname", Content: []byte(name + "\n")},
		{Path: "/etc/resolv.conf", Content: resolvConf(b.cell.cfg.Network.Resolvers())},
	}
}

func resolvConf(servers []netip.Addr) []byte {
	var b bytes.Buffer
	for _, s := range servers {
		fmt.Fprintf(&b, "nameserver %s\n", s)
	}
	return b.Bytes()
}
