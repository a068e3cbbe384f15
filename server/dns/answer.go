package dns

import (
	"math/rand/v2"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// How long an answer may be: a packet without EDNS, one with, and a message over
// TCP. What is longer than a client takes is cut, and says so.
const (
	plainSize = 512
	ednsSize  = 1232
	overUDP   = 0
	overTCP   = 1<<16 - 1
)

// question is what a client asked.
type question struct {
	header dnsmessage.Header
	dnsmessage.Question
	name string // in lower case, without the dot at the end
	edns int    // the size it takes; 0 without EDNS
}

func parse(query []byte) (q question, err error) {
	var p dnsmessage.Parser
	if q.header, err = p.Start(query); err != nil {
		return q, err
	}
	if q.Question, err = p.Question(); err != nil {
		return q, err
	}
	q.name = strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	if p.SkipAllQuestions() != nil || p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil {
		return q, nil
	}
	for {
		h, err := p.AdditionalHeader()
		if err != nil {
			return q, nil
		}
		if h.Type == dnsmessage.TypeOPT {
			q.edns = max(int(h.Class), plainSize)
		}
		if p.SkipAdditional() != nil {
			return q, nil
		}
	}
}

// answer answers a question that is for the table; ours reports whether it is.
// What is not a question gets none: nil.
func answer(query []byte, t *Table, size int) (reply []byte, ours bool) {
	q, err := parse(query)
	if err != nil || q.header.Response {
		return nil, true
	}
	if q.header.OpCode != 0 {
		return q.reply(dnsmessage.RCodeNotImplemented, nil, size), true
	}
	zone, ok := t.zone(q.name)
	if !ok || q.Class != dnsmessage.ClassINET {
		return nil, false
	}
	hosts := t.lookUp(q.name)
	switch {
	case len(hosts) == 0 && q.name != zone:
		return q.reply(dnsmessage.RCodeNameError, nil, size), true
	case q.Type != dnsmessage.TypeA && q.Type != dnsmessage.TypeALL:
		hosts = nil // it has no other records
	}
	return q.reply(dnsmessage.RCodeSuccess, hosts, size), true
}

// failed says that an answer could not be found.
func failed(query []byte) []byte {
	q, err := parse(query)
	if err != nil {
		return nil
	}
	return q.reply(dnsmessage.RCodeServerFailure, nil, overUDP)
}

// zone is the internal domain that a name is, or is in, or the name itself.
func (t *Table) zone(name string) (string, bool) {
	if t.Names[name] || t.isLocalhost(name) {
		return name, true
	}
	for _, z := range t.Zones {
		if name == z || strings.HasSuffix(name, "."+z) {
			return z, true
		}
	}
	return "", false
}

// isLocalhost reports whether a name is this machine's below localhost.
func (t *Table) isLocalhost(name string) bool {
	return t.localhost.IsValid() && strings.HasSuffix(name, ".localhost")
}

// lookUp returns the hosts of a name, or the one that its first label is the
// index of.
func (t *Table) lookUp(name string) []Host {
	if hosts := t.Hosts[name]; len(hosts) > 0 {
		return hosts
	}
	if t.isLocalhost(name) {
		return []Host{{Address: t.localhost}}
	}
	label, rest, _ := strings.Cut(name, ".")
	index, err := strconv.Atoi(label)
	if err != nil || strconv.Itoa(index) != label {
		return nil
	}
	var one []Host
	for _, h := range t.Hosts[rest] {
		if h.Index == index {
			one = append(one, h)
		}
	}
	return one
}

// reply makes the answer, of as many hosts as there is room for, in any order.
// The time to live is 0: the next question may have another answer.
func (q question) reply(code dnsmessage.RCode, hosts []Host, size int) []byte {
	const header, tail, opt, address = 12, 4, 11, 16
	if size == overUDP {
		size = plainSize
		if q.edns > 0 {
			size = min(q.edns, ednsSize)
		}
	}
	room := (size - header - int(q.Name.Length) - 1 - tail - opt) / address
	b := dnsmessage.NewBuilder(make([]byte, 0, plainSize), dnsmessage.Header{
		ID: q.header.ID, Response: true, OpCode: q.header.OpCode, RCode: code, Truncated: len(hosts) > room,
		Authoritative: code != dnsmessage.RCodeServerFailure, RecursionDesired: q.header.RecursionDesired, RecursionAvailable: true,
	})
	b.EnableCompression()
	err := b.StartQuestions()
	if err == nil {
		err = b.Question(q.Question)
	}
	if err == nil {
		err = b.StartAnswers()
	}
	for n, i := range rand.Perm(len(hosts)) {
		if err != nil || n >= room {
			break
		}
		err = b.AResource(dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET}, dnsmessage.AResource{A: hosts[i].Address.As4()})
	}
	if err == nil && q.edns > 0 {
		err = addEDNS(&b)
	}
	if err != nil {
		return nil
	}
	m, err := b.Finish()
	if err != nil {
		return nil
	}
	return m
}

func addEDNS(b *dnsmessage.Builder) error {
	if err := b.StartAdditionals(); err != nil {
		return err
	}
	var h dnsmessage.ResourceHeader
	if err := h.SetEDNS0(ednsSize, dnsmessage.RCodeSuccess, false); err != nil {
		return err
	}
	return b.OPTResource(h, dnsmessage.OPTResource{})
}
