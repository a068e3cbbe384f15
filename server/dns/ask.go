package dns

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"
)

// Two rounds through the resolvers, of at most so many as the C library asks.
// Clients have given up after some 5 s.
const (
	rounds       = 2
	maxResolvers = 3
	patience     = 2 * time.Second // with one
	patienceAll  = 6 * time.Second
)

// ask forwards a question, and returns the answer or that there is none.
func (s *Server) ask(ctx context.Context, network string, query []byte) []byte {
	ctx, cancel := context.WithTimeout(ctx, patienceAll)
	defer cancel()
	resolvers := s.cfg.Resolvers()
	for range rounds {
		for _, r := range resolvers {
			if reply, err := exchange(ctx, network, r, query); err == nil {
				return reply
			}
		}
	}
	return failed(query)
}

var errNoAnswer = errors.New("not an answer to the question")

// exchange queries one resolver from a random port with a random ID.
func exchange(ctx context.Context, network string, resolver netip.AddrPort, query []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, network, resolver.String())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	own := bytes.Clone(query)
	binary.BigEndian.PutUint16(own, uint16(rand.Uint32()))
	if network == "tcp" {
		if err := writeMessage(c, own); err != nil {
			return nil, err
		}
		reply, err := readMessage(c)
		if err != nil || !answers(reply, own) {
			return nil, errors.Join(err, errNoAnswer)
		}
		return withID(reply, query), nil
	}
	if _, err := c.Write(own); err != nil {
		return nil, err
	}
	buf := make([]byte, 1<<16)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return nil, err
		}
		if reply := buf[:n]; answers(reply, own) {
			return withID(bytes.Clone(reply), query), nil
		}
	}
}

// withID gives an answer the ID that the client knows.
func withID(reply, query []byte) []byte {
	copy(reply[:2], query)
	return reply
}

// answers reports whether a message answers the question that was asked.
func answers(reply, query []byte) bool {
	if len(reply) < 2 || !bytes.Equal(reply[:2], query[:2]) {
		return false
	}
	a, err := parse(reply)
	q, err2 := parse(query)
	return err == nil && err2 == nil && a.header.Response && a.name == q.name && a.Type == q.Type && a.Class == q.Class
}

// checkInterval is how often the host's resolvers are looked at.
const checkInterval = time.Second

// HostResolvers returns the resolvers that a Server uses when none are
// configured.
func HostResolvers() []netip.AddrPort {
	return (&hostResolvers{path: resolvConf}).read()
}

// resolvConf is the host's.
const resolvConf = "/etc/resolv.conf"

// hostResolvers are those of a resolv.conf, but for ourselves.
type hostResolvers struct {
	path string
	not  netip.Addr

	mu      sync.Mutex
	checked time.Time
	changed time.Time // of the file
	found   []netip.AddrPort
}

func (h *hostResolvers) read() []netip.AddrPort {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.checked) < checkInterval {
		return h.found
	}
	h.checked = time.Now()
	info, err := os.Stat(h.path)
	if err != nil {
		h.found, h.changed = nil, time.Time{}
		return nil
	}
	if info.ModTime().Equal(h.changed) {
		return h.found
	}
	text, err := os.ReadFile(h.path)
	if err != nil {
		return h.found
	}
	h.changed, h.found = info.ModTime(), parseResolvers(string(text), h.not)
	return h.found
}

// parseResolvers are the name servers that a resolv.conf names, but for one.
func parseResolvers(text string, not netip.Addr) (all []netip.AddrPort) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" || len(all) == maxResolvers {
			continue
		}
		if a, err := netip.ParseAddr(fields[1]); err == nil && a != not {
			all = append(all, netip.AddrPortFrom(a, 53))
		}
	}
	return all
}
