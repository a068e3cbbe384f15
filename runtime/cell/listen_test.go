package cell

import (
	"net/netip"
	"strings"
	"testing"
)

func TestListenHint(t *testing.T) {
	t.Parallel()
	const head = "  sl  local_address rem_address   st tx_queue rx_queue\n"
	for name, c := range map[string]struct{ lines, want string }{
		"where it should":  {"   0: 00000000:1F90 00000000:0000 0A 0\n", ""},
		"IPv6 wildcard":    {"   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 0\n", ""},
		"wrong port":       {"   0: 00000000:0BB8 00000000:0000 0A 0\n", "the app listens on 0.0.0.0:3000 and not on port 8080: it must listen on the port in $PORT"},
		"loopback":         {"   0: 0100007F:1F90 00000000:0000 0A 0\n", "the app listens on 127.0.0.1:8080, which only its own container reaches: it must listen on 0.0.0.0:8080"},
		"IPv6 loopback":    {"   0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 0\n", "the app listens on [::1]:8080, which only its own container reaches: it must listen on 0.0.0.0:8080"},
		"connections only": {"   0: 0100007F:1F90 0100007F:0BB8 01 0\n", "the app listens on no port: it must listen on the port in $PORT (8080), sooner or with a longer timeout in its manifest, or have the health check type process"},
		"nothing readable": {"   0: zz:1F90 00000000:0000 0A 0\n", "the app listens on no port: it must listen on the port in $PORT (8080), sooner or with a longer timeout in its manifest, or have the health check type process"},
	} {
		if got := listenHint(parseListeners(head+c.lines), 8080); got != c.want {
			t.Errorf("%s: got %q; want %q", name, got, c.want)
		}
	}
	many := strings.Repeat("   0: 00000000:0BB8 00000000:0000 0A 0\n", 3)
	if got := listenHint(append(parseListeners(many), netip.MustParseAddrPort("0.0.0.0:1")), 8080); strings.Count(got, ":3000") != 1 {
		t.Errorf("got %q; want each listener once", got)
	}
}
