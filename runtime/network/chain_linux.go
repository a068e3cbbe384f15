package network

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// compile names the chain of every policy and the rules of every chain. A
// policy without rules has none. One of an address outside the subnet is left
// out: its container has ended since, or else the subnet would not have changed.
func (f *firewall) compile(policies []Policy) (map[netip.Addr]string, map[string][]Rule, error) {
	want, rules := map[netip.Addr]string{}, map[string][]Rule{}
	// All instances of an app have one list: see Policy.
	type list struct {
		first *Rule
		count int
	}
	names := map[list]string{}
	for _, p := range policies {
		if !f.subnet.Contains(p.Address) || len(p.Egress) == 0 {
			continue
		}
		key := list{&p.Egress[0], len(p.Egress)}
		name, known := names[key]
		if !known {
			compiled, err := f.compileList(p.Egress)
			if err != nil {
				return nil, nil, err
			}
			if len(compiled) > 0 {
				name = chainPrefix + digest(compiled)
				rules[name] = compiled
			}
			names[key] = name
		}
		if name != "" {
			want[p.Address] = name
		}
	}
	return want, rules, nil
}

func (f *firewall) compileList(egress []Rule) ([]Rule, error) {
	list := make([]Rule, 0, len(egress))
	for _, r := range egress {
		if _, ok := protocols()[r.Protocol]; !ok {
			return nil, fmt.Errorf("set egress rules: protocol %q is not tcp, udp, icmp or all", r.Protocol)
		}
		r.Destinations = within(r.Destinations, rangeOf(f.subnet))
		r.Ports = mergePorts(r.Ports)
		if len(r.Destinations) > 0 {
			list = append(list, r)
		}
		list = append(list, f.router.rules(r)...)
	}
	return list, nil
}

// meaning is what the digest of rules changes with, besides the rules: how they
// become expressions. A later daemon takes chains of the same name as they are.
const meaning = "3"

func digest(rules []Rule) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %v", meaning, rules))
	return hex.EncodeToString(sum[:8])
}

// protocols are those of security groups with their numbers; "all" has none.
func protocols() map[string]byte {
	return map[string]byte{"tcp": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP, "icmp": unix.IPPROTO_ICMP, "all": 0}
}

// addChain adds a chain of rules to the batch.
func (f *firewall) addChain(name string, rules []Rule) error {
	chain := f.conn.AddChain(&nftables.Chain{Name: name, Table: f.table})
	for _, r := range rules {
		exprs, err := f.ruleExprs(r)
		if err != nil {
			return err
		}
		f.conn.AddRule(&nftables.Rule{Table: f.table, Chain: chain, Exprs: exprs})
	}
	return nil
}

func (f *firewall) ruleExprs(r Rule) ([]expr.Any, error) {
	to, err := f.destinationOf(r)
	if err != nil {
		return nil, err
	}
	exprs := slices.Concat(to, protocolIs(r.Protocol))
	switch r.Protocol {
	case "tcp", "udp":
		ports, err := f.portIn(r.Ports)
		if err != nil {
			return nil, err
		}
		exprs = append(exprs, ports...)
	case "icmp":
		exprs = append(exprs, icmpIs(r.ICMPType, r.ICMPCode)...)
	}
	if r.Log {
		exprs = append(exprs, &expr.Log{Key: 1 << unix.NFTA_LOG_PREFIX, Data: []byte(f.table.Name + " egress ")})
	}
	return append(exprs, accept()...), nil
}

// destinationOf matches packets to where a rule allows them. Without a destination that is
// the host, whatever its addresses are.
func (f *firewall) destinationOf(r Rule) ([]expr.Any, error) {
	if len(r.Destinations) == 0 {
		return leaves(expr.CmpOpEq), nil
	}
	to, err := f.destinationIn(r.Destinations)
	if err == nil && r.sparesHost() {
		to = slices.Concat(leaves(expr.CmpOpNeq), to)
	}
	return to, err
}

// leaves compares the link that packets leave by with none, which those for the host
// have.
func leaves(op expr.CmpOp) []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyOIF, Register: 1}, &expr.Cmp{Op: op, Register: 1, Data: make([]byte, 4)}}
}

func protocolIs(name string) []expr.Any {
	number := protocols()[name]
	if number == 0 {
		return nil
	}
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, equal(number)}
}

func (f *firewall) destinationIn(ranges []Range) ([]expr.Any, error) {
	var elements []nftables.SetElement
	for _, r := range ranges {
		elements = append(elements, nftables.SetElement{Key: r.From.AsSlice()})
		if end := r.To.Next(); end.IsValid() { // nothing comes after the last address
			elements = append(elements, nftables.SetElement{Key: end.AsSlice(), IntervalEnd: true})
		}
	}
	const destination, length = 16, 4 // in the IPv4 header
	load := &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: destination, Len: length}
	return f.in(load, nftables.TypeIPAddr, elements)
}

func (f *firewall) portIn(ports []PortRange) ([]expr.Any, error) {
	if len(ports) == 0 {
		return nil, nil
	}
	var elements []nftables.SetElement
	for _, p := range ports {
		elements = append(elements, nftables.SetElement{Key: binary.BigEndian.AppendUint16(nil, p.From)})
		if p.To < 65535 {
			elements = append(elements, nftables.SetElement{Key: binary.BigEndian.AppendUint16(nil, p.To+1), IntervalEnd: true})
		}
	}
	const destination, length = 2, 2 // in the TCP and UDP headers
	load := &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: destination, Len: length}
	return f.in(load, nftables.TypeInetService, elements)
}

// in matches what load loads with an anonymous set of intervals.
func (f *firewall) in(load expr.Any, key nftables.SetDatatype, elements []nftables.SetElement) ([]expr.Any, error) {
	set := &nftables.Set{Table: f.table, Anonymous: true, Constant: true, Interval: true, KeyType: key}
	if err := f.conn.AddSet(set, elements); err != nil {
		return nil, fmt.Errorf("encode set of %s: %w", key.Name, err)
	}
	return []expr.Any{load, &expr.Lookup{SourceRegister: 1, SetName: set.Name, SetID: set.ID}}, nil
}

func icmpIs(kind, code int) []expr.Any {
	var exprs []expr.Any
	for offset, value := range []int{kind, code} {
		if value >= 0 {
			exprs = append(exprs,
				&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: uint32(offset), Len: 1},
				equal(byte(value)))
		}
	}
	return exprs
}

func equal(data ...byte) expr.Any { return &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data} }

// from matches what comes out of a container: a name without its closing zero
// is compared as a prefix.
func (f *firewall) from() []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1}, equal([]byte(f.links)...)}
}

func (f *firewall) to() []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 1}, equal([]byte(f.links)...)}
}

func (f *firewall) notTo() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: []byte(f.links)},
	}
}

// answers matches packets of connections that were allowed.
func answers() []expr.Any { return stateIn(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED) }

// stateIn matches packets whose connection is in one of the states.
func stateIn(bits uint32) []expr.Any {
	states := binaryutil.NativeEndian.PutUint32(bits)
	zero := make([]byte, 4)
	return []expr.Any{
		&expr.Ct{Register: 1, Key: expr.CtKeySTATE},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: states, Xor: zero},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: zero},
	}
}

// gateway is the host's address in the containers' network.
func (f *firewall) gateway() netip.Addr { return f.subnet.Addr().Next() }

// asksNames are the rules that let containers ask the host's address for names,
// by UDP and TCP.
func (f *firewall) asksNames() (rules [][]expr.Any) {
	const addressAt, portAt, port = 16, 2, 53
	for _, protocol := range []string{"udp", "tcp"} {
		rules = append(rules, slices.Concat(f.from(), protocolIs(protocol), []expr.Any{
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: addressAt, Len: 4}, equal(f.gateway().AsSlice()...),
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: portAt, Len: 2}, equal(0, port),
		}, accept()))
	}
	return rules
}

// dropQueries is the rule that drops containers' DNS queries while the
// daemon does not listen: resolvers retry some seconds later, when the next
// daemon runs; a rejection would be a final answer.
func (f *firewall) dropQueries() []expr.Any {
	const ownHeader, addressAt, ipHeader, portAt, port = 8, 16, 20, 2, 53 // of the packet that the message is about
	load := func(offset, length uint32) expr.Any {
		return &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: offset, Len: length}
	}
	const unreachable, portUnreachable = 3, 3
	return slices.Concat(f.to(), protocolIs("icmp"), []expr.Any{
		load(0, 2), equal(unreachable, portUnreachable),
		load(ownHeader+addressAt, 4), equal(f.gateway().AsSlice()...),
		load(ownHeader+ipHeader+portAt, 2), equal(0, port),
	}, drop())
}

// dropResets are the rules that drop the answers to connections to the router at the
// host's address in this network while the daemon does not listen: clients try again
// some seconds later. A connection that was refused is not an established one: its answer is
// related to it.
func (f *firewall) dropResets() (rules [][]expr.Any) {
	const sourceAt, portAt, sequenceAt, flagsAt, resetAck = 12, 0, 4, 13, 0x14
	for _, at := range f.router.at {
		if at.Addr() != f.gateway() {
			continue
		}
		load := func(base expr.PayloadBase, offset, length uint32) expr.Any {
			return &expr.Payload{DestRegister: 1, Base: base, Offset: offset, Len: length}
		}
		rules = append(rules, slices.Concat(f.to(), protocolIs("tcp"), stateIn(expr.CtStateBitESTABLISHED), []expr.Any{
			load(expr.PayloadBaseNetworkHeader, sourceAt, 4), equal(at.Addr().AsSlice()...),
			load(expr.PayloadBaseTransportHeader, portAt, 2), equal(binary.BigEndian.AppendUint16(nil, at.Port())...),
			load(expr.PayloadBaseTransportHeader, flagsAt, 1), equal(resetAck),
			load(expr.PayloadBaseTransportHeader, sequenceAt, 4), equal(0, 0, 0, 0), // in an answer to what opens a connection
		}, drop()))
	}
	return rules
}

// lookUp goes to the chain of the container that sends.
func (f *firewall) lookUp() []expr.Any {
	const source, length, verdict = 12, 4, 0
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: source, Len: length},
		&expr.Lookup{SourceRegister: 1, DestRegister: verdict, IsDestRegSet: true, SetName: f.vmap.Name, SetID: f.vmap.ID},
	}
}

// foreignSource matches packets whose source the host would not answer through
// the link they came from.
func foreignSource() []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: 1, FlagSADDR: true, FlagIIF: true, ResultOIF: true},
		equal(0, 0, 0, 0),
	}
}

func sourceIn(p netip.Prefix) []expr.Any {
	const source = 12
	mask := binary.BigEndian.AppendUint32(nil, ^uint32(0)<<(32-p.Bits()))
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: source, Len: 4},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: mask, Xor: make([]byte, 4)},
		equal(p.Addr().AsSlice()...),
	}
}

func accept() []expr.Any { return []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}} }
func drop() []expr.Any   { return []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}} }

// refuse lets a program know at once that it may not connect. TCP gets a reset,
// since the kernel sends but one ICMP message a second to a container.
func refuse() [][]expr.Any {
	const portUnreachable = 3
	return [][]expr.Any{
		append(protocolIs("tcp"), &expr.Reject{Type: unix.NFT_REJECT_TCP_RST}),
		{&expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: portUnreachable}},
	}
}
