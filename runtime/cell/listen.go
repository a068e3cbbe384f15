package cell

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"cupola/runtime/container"
	"cupola/runtime/contract"
	"cupola/runtime/lrp"
)

// portHint explains why nothing answers at a port of an app: where it listens instead, as the kernel shows it.
// Clients of the BBS get Diego's words and nothing else.
func (b *build) portHint(port uint16) string {
	if b.spec.Domain != lrp.DomainApps {
		return ""
	}
	states, err := b.cell.cfg.Containers.List()
	if err != nil {
		return ""
	}
	at := slices.IndexFunc(states, func(s container.State) bool { return s.ID == b.guid() && s.Alive })
	if at < 0 {
		return ""
	}
	var all []netip.AddrPort
	for _, file := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(states[at].PID) + "/net/" + file)
		if err != nil && file == "tcp" {
			return ""
		}
		all = append(all, parseListeners(string(text))...)
	}
	own := append(b.tlsPorts(), contract.InternalTLSPort)
	return listenHint(slices.DeleteFunc(all, func(a netip.AddrPort) bool { return slices.Contains(own, a.Port()) }), port)
}

// listenHint says what is wrong with an app's listeners for a check of a port; "" where nothing is.
func listenHint(all []netip.AddrPort, port uint16) string {
	var others []string
	local := ""
	for _, a := range all {
		switch {
		case a.Port() != port:
			others = append(others, a.String())
		case a.Addr().IsLoopback():
			local = a.String()
		default:
			return "" // it listens where it should: it did not answer
		}
	}
	slices.Sort(others)
	switch others = slices.Compact(others); {
	case local != "":
		return fmt.Sprintf("the app listens on %s, which only its own container reaches: it must listen on 0.0.0.0:%d", local, port)
	case len(others) > 0:
		return fmt.Sprintf("the app listens on %s and not on port %d: it must listen on the port in $PORT", strings.Join(others[:min(len(others), 5)], ", "), port)
	}
	return fmt.Sprintf("the app listens on no port: it must listen on the port in $PORT (%d), sooner or with a longer timeout in its manifest, or have the health check type process", port)
}

// listening is the state of a listener in /proc/net/tcp.
const listening = "0A"

// parseListeners reads /proc/net/tcp or tcp6: the local addresses of listeners.
func parseListeners(text string) (all []netip.AddrPort) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != listening {
			continue
		}
		address, port, _ := strings.Cut(fields[1], ":")
		raw, err := hex.DecodeString(address)
		n, err2 := strconv.ParseUint(port, 16, 16)
		if err != nil || err2 != nil || len(raw)%4 != 0 {
			continue
		}
		for i := 0; i < len(raw); i += 4 { // each word is in the machine's order
			binary.BigEndian.PutUint32(raw[i:], binary.NativeEndian.Uint32(raw[i:]))
		}
		if addr, ok := netip.AddrFromSlice(raw); ok {
			all = append(all, netip.AddrPortFrom(addr.Unmap(), uint16(n)))
		}
	}
	return all
}
