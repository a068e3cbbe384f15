package dns

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

var back = Table{Zones: []string{"apps.internal"}, Hosts: map[string][]Host{
	"back.apps.internal": {{netip.MustParseAddr("10.9.0.2"), 0}, {netip.MustParseAddr("10.9.0.3"), 1}},
	"idle.apps.internal": nil,
	"nats.example.com":   {{netip.MustParseAddr("10.9.0.4"), 0}},
}, Names: map[string]bool{"nats.example.com": true, "none.example.com": true}, localhost: netip.MustParseAddr("10.9.0.1")}

func ask(t testing.TB, name string, kind dnsmessage.Type, size uint16) []byte {
	t.Helper()
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: 7, RecursionDesired: true})
	err := b.StartQuestions()
	if err == nil {
		err = b.Question(dnsmessage.Question{Name: dnsmessage.MustNewName(name + "."), Type: kind, Class: dnsmessage.ClassINET})
	}
	if err == nil && size > 0 {
		err = b.StartAdditionals()
		if err == nil {
			err = b.OPTResource(dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName("."), Class: dnsmessage.Class(size)}, dnsmessage.OPTResource{})
		}
	}
	m, err2 := b.Finish()
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	return m
}

// read gives a reply as "CODE address address".
func read(t testing.TB, reply []byte) (string, dnsmessage.Message) {
	t.Helper()
	var m dnsmessage.Message
	if err := m.Unpack(reply); err != nil {
		t.Fatal(err)
	}
	words := []string{}
	for _, a := range m.Answers {
		r, ok := a.Body.(*dnsmessage.AResource)
		if !ok || a.Header.TTL != 0 {
			t.Fatalf("got answer %+v; want an address that is not kept", a)
		}
		words = append(words, netip.AddrFrom4(r.A).String())
	}
	slices.Sort(words)
	return strings.TrimSpace(strings.TrimPrefix(m.RCode.String(), "RCode") + " " + strings.Join(words, " ")), m
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name string
		kind dnsmessage.Type
		want string // "" for somebody else's
	}{
		{"back.apps.internal", dnsmessage.TypeA, "Success 10.9.0.2 10.9.0.3"},
		{"BACK.Apps.Internal", dnsmessage.TypeA, "Success 10.9.0.2 10.9.0.3"},
		{"back.apps.internal", dnsmessage.TypeAAAA, "Success"},
		{"1.back.apps.internal", dnsmessage.TypeA, "Success 10.9.0.3"},
		{"2.back.apps.internal", dnsmessage.TypeA, "NameError"},
		{"01.back.apps.internal", dnsmessage.TypeA, "NameError"},
		{"x.back.apps.internal", dnsmessage.TypeA, "NameError"},
		{"idle.apps.internal", dnsmessage.TypeA, "NameError"},
		{"none.apps.internal", dnsmessage.TypeAAAA, "NameError"},
		{"apps.internal", dnsmessage.TypeA, "Success"},
		{"myapps.internal", dnsmessage.TypeA, ""},
		{"nats.example.com", dnsmessage.TypeA, "Success 10.9.0.4"},
		{"none.example.com", dnsmessage.TypeA, "Success"},
		{"x.none.example.com", dnsmessage.TypeA, ""},
		{"example.com", dnsmessage.TypeA, ""},
		{"API.localhost", dnsmessage.TypeA, "Success 10.9.0.1"},
		{"a.b.localhost", dnsmessage.TypeAAAA, "Success"},
		{"localhost", dnsmessage.TypeA, ""},
	} {
		reply, ours := answer(ask(t, c.name, c.kind, 0), &back, overUDP)
		if !ours || c.want == "" {
			if ours || c.want != "" {
				t.Errorf("%s: got ours %v; want %q", c.name, ours, c.want)
			}
			continue
		}
		got, m := read(t, reply)
		if got != c.want || m.ID != 7 || !m.Response || !m.Authoritative || len(m.Questions) != 1 || m.Questions[0].Name.String() != c.name+"." {
			t.Errorf("%s: got %s, %+v; want %s", c.name, got, m.Header, c.want)
		}
	}
}

func TestLongAnswersAreCut(t *testing.T) {
	many := Table{Zones: []string{"apps.internal"}, Hosts: map[string][]Host{}}
	for i := range 200 {
		many.Hosts["x.apps.internal"] = append(many.Hosts["x.apps.internal"], Host{netip.AddrFrom4([4]byte{10, 9, 1, byte(i)}), i})
	}
	for _, c := range []struct {
		edns, over, limit int
		cut               bool
	}{{0, overUDP, plainSize, true}, {4096, overUDP, ednsSize, true}, {100, overUDP, plainSize, true}, {0, overTCP, overTCP, false}} {
		reply, _ := answer(ask(t, "x.apps.internal", dnsmessage.TypeA, uint16(c.edns)), &many, c.over)
		_, m := read(t, reply)
		if len(reply) > c.limit || len(reply) < min(c.limit, 3000)-40 || m.Truncated != c.cut || (len(m.Additionals) > 0) != (c.edns > 0) {
			t.Errorf("%+v: got %d bytes, %d answers, cut %v", c, len(reply), len(m.Answers), m.Truncated)
		}
	}
}

// serve runs a server on the loopback until the test ends.
func serve(t *testing.T, clients string, resolvers ...netip.AddrPort) *Server {
	t.Helper()
	cfg := Config{Address: netip.MustParseAddrPort("127.0.0.1:0"), Clients: netip.MustParsePrefix(clients), Resolvers: func() []netip.AddrPort { return resolvers }}
	s, err := Listen(cfg)
	for errors.Is(err, syscall.EADDRINUSE) { // the port that is free for UDP may be taken for TCP
		s, err = Listen(cfg)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("got %v from Run; want none", err)
		}
	})
	s.Set(back)
	return s
}

func exchangeWith(t *testing.T, s *Server, network string, query []byte) ([]byte, error) {
	t.Helper()
	c, err := net.Dial(network, s.Address().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if network == "tcp" {
		if err := writeMessage(c, query); err != nil {
			return nil, err
		}
		return readMessage(c)
	}
	if _, err := c.Write(query); err != nil {
		return nil, err
	}
	buf := make([]byte, 4096)
	n, err := c.Read(buf)
	return buf[:n], err
}

func TestServesAndForwards(t *testing.T) {
	upstream := serve(t, "127.0.0.0/8")
	upstream.Set(Table{Zones: []string{"example.com"}, Hosts: map[string][]Host{"www.example.com": {{netip.MustParseAddr("9.9.9.9"), 0}}}})
	nobody := netip.MustParseAddrPort("127.0.0.1:1")
	s := serve(t, "127.0.0.0/8", nobody, upstream.Address())
	alone := serve(t, "127.0.0.0/8")
	for _, network := range []string{"udp", "tcp"} {
		for _, c := range []struct {
			s          *Server
			name, want string
		}{
			{s, "back.apps.internal", "Success 10.9.0.2 10.9.0.3"}, {s, "www.example.com", "Success 9.9.9.9"}, {s, "no.example.com", "NameError"},
			{alone, "back.apps.internal", "Success 10.9.0.2 10.9.0.3"}, {alone, "www.example.com", "ServerFailure"},
		} {
			reply, err := exchangeWith(t, c.s, network, ask(t, c.name, dnsmessage.TypeA, 1232))
			if err != nil {
				t.Errorf("%s %s: %v", network, c.name, err)
				continue
			}
			if got, m := read(t, reply); got != c.want || m.ID != 7 {
				t.Errorf("%s %s: got %s, ID %d; want %s", network, c.name, got, m.ID, c.want)
			}
		}
	}
}

func TestAnswersNobodyElse(t *testing.T) {
	s := serve(t, "10.9.0.0/16")
	query := ask(t, "back.apps.internal", dnsmessage.TypeA, 0)
	if got, err := exchangeWith(t, s, "tcp", query); err == nil {
		t.Errorf("got %x over TCP; want none", got)
	}
	c, err := net.Dial("udp", s.Address().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = c.Write(query)
	if err := c.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 512)); err == nil {
		t.Errorf("got %d bytes; want none", n)
	}
}

func TestLimiter(t *testing.T) {
	l := limiter{by: map[netip.Addr]int{}}
	a := netip.MustParseAddr("10.9.0.2")
	for range maxBusyOfOne {
		if !l.enter(a) {
			t.Fatal("refused too early")
		}
	}
	if l.enter(a) || !l.enter(a.Next()) {
		t.Error("one client has another's room, or more than its own")
	}
	l.leave(a)
	if !l.enter(a) {
		t.Error("room is not given back")
	}
}

func TestForeignAnswersAreDropped(t *testing.T) {
	query := ask(t, "www.example.com", dnsmessage.TypeA, 0)
	good := failed(query)
	for what, change := range map[string]func([]byte) []byte{
		"another ID":       func(m []byte) []byte { binary.BigEndian.PutUint16(m, 8); return m },
		"no answer":        func([]byte) []byte { return slices.Clone(query) },
		"another question": func([]byte) []byte { return failed(ask(t, "www.example.org", dnsmessage.TypeA, 0)) },
		"cut":              func(m []byte) []byte { return m[:5] },
	} {
		if answers(change(slices.Clone(good)), query) {
			t.Errorf("%s is taken for the answer", what)
		}
	}
	if !answers(good, query) {
		t.Error("the answer is not taken")
	}
}

func TestHostResolvers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	h := &hostResolvers{path: path, not: netip.MustParseAddr("10.9.0.1")}
	look := func() string {
		h.checked = time.Time{}
		var words []string
		for _, a := range h.read() {
			words = append(words, a.String())
		}
		return strings.Join(words, " ")
	}
	write := func(n int, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Unix(int64(n), 0)); err != nil {
			t.Fatal(err)
		}
	}
	if got := look(); got != "" {
		t.Errorf("without a file: got %q", got)
	}
	write(1, "# x\nnameserver 127.0.0.53\nnameserver 10.9.0.1\nnameserver ::1\nsearch a\nnameserver x\n")
	if got := look(); got != "127.0.0.53:53 [::1]:53" {
		t.Errorf("got %q", got)
	}
	write(2, "nameserver 1.1.1.1\nnameserver 1.1.1.2\nnameserver 1.1.1.3\nnameserver 1.1.1.4\n")
	if got := look(); got != "1.1.1.1:53 1.1.1.2:53 1.1.1.3:53" {
		t.Errorf("changed: got %q", got)
	}
}

// FuzzAnswer wants every answer to belong to its question, within its
// size.
func FuzzAnswer(f *testing.F) {
	for _, name := range []string{"back.apps.internal", "0.back.apps.internal", "apps.internal", "example.com"} {
		f.Add(ask(f, name, dnsmessage.TypeA, 0))
		f.Add(ask(f, name, dnsmessage.TypeAAAA, 1232))
	}
	f.Fuzz(func(t *testing.T, query []byte) {
		reply, ours := answer(query, &back, overUDP)
		if !ours {
			reply = failed(query)
		}
		if reply == nil {
			return
		}
		if len(reply) > ednsSize || !answers(reply, query) {
			t.Errorf("got %x for %x", reply, query)
		}
	})
}

// FuzzResolvers wants no panic, and no more resolvers than are asked.
func FuzzResolvers(f *testing.F) {
	f.Add("nameserver 1.1.1.1\n")
	f.Fuzz(func(t *testing.T, text string) {
		if all := parseResolvers(text, netip.Addr{}); len(all) > maxResolvers {
			t.Errorf("got %s resolvers", strconv.Itoa(len(all)))
		}
	})
}
