package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/google/nftables/xt"
)

// tablePrefix begins the names of all Networks' tables.
const tablePrefix = "cupola"

// firewalldTable is the table of firewalld, which it alone may change.
const firewalldTable = "firewalld"

// closing is a chain of another program which drops packets that none of its
// rules accepts. The kernel asks the chains of all programs: what ours accept is
// dropped there all the same.
type closing struct {
	chain *nftables.Chain
	rules []*nftables.Rule
	end   *nftables.Rule // the rule that drops all that comes to it; nil: the chain's policy
}

func (c closing) String() string { return c.chain.Table.Name + " " + c.chain.Name }

// ruleset is what others have in the kernel.
type ruleset struct {
	conn   *nftables.Conn
	chains []*nftables.Chain
}

// foreign reads the chains of other programs.
func foreign(conn *nftables.Conn) (ruleset, error) {
	s := ruleset{conn: conn}
	for _, family := range []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyINet} {
		chains, err := conn.ListChainsOfTableFamily(family)
		if err != nil {
			return s, fmt.Errorf("list chains: %w", err)
		}
		s.chains = append(s.chains, slices.DeleteFunc(chains, func(c *nftables.Chain) bool { return strings.HasPrefix(c.Table.Name, tablePrefix) })...)
	}
	return s, nil
}

// rules are those of a chain.
func (s ruleset) rules(c *nftables.Chain) ([]*nftables.Rule, error) {
	rules, err := s.conn.GetRules(c.Table, c)
	if err != nil {
		return nil, fmt.Errorf("list rules of %s %s: %w", c.Table.Name, c.Name, err)
	}
	return rules, nil
}

// gates are the chains that packets pass which come out of containers or go there.
func (s ruleset) gates() (gates []*nftables.Chain) {
	hooks := []nftables.ChainHook{*nftables.ChainHookInput, *nftables.ChainHookForward, *nftables.ChainHookOutput}
	for _, c := range s.chains {
		if c.Hooknum != nil && c.Type == nftables.ChainTypeFilter && slices.Contains(hooks, *c.Hooknum) {
			gates = append(gates, c)
		}
	}
	return gates
}

// closings are the gates that drop what none of their rules accepts.
func (s ruleset) closings() (found []closing, err error) {
	for _, c := range s.gates() {
		rules, err := s.rules(c)
		if err != nil {
			return nil, err
		}
		end, err := s.end(rules, 0)
		if err != nil {
			return nil, err
		}
		if end != nil || c.Policy != nil && *c.Policy == nftables.ChainPolicyDrop {
			found = append(found, closing{c, rules, end})
		}
	}
	return found, nil
}

// deepest is how far the kernel follows jumps from chain to chain.
const deepest = 16

// end is the first rule that drops all that comes to it, itself or by a jump.
func (s ruleset) end(rules []*nftables.Rule, depth int) (*nftables.Rule, error) {
	for _, r := range rules {
		drops, target := always(r)
		if target != "" && depth < deepest {
			i := slices.IndexFunc(s.chains, func(c *nftables.Chain) bool {
				return c.Name == target && c.Table.Name == r.Table.Name && c.Table.Family == r.Table.Family
			})
			if i < 0 {
				continue
			}
			below, err := s.rules(s.chains[i])
			if err != nil {
				return nil, err
			}
			end, err := s.end(below, depth+1)
			if err != nil {
				return nil, err
			}
			drops = end != nil
		}
		if drops {
			return r, nil
		}
	}
	return nil, nil
}

// always is what a rule does with all packets: drop them, or hand them to the
// chain target. A rule for some packets does neither.
func always(r *nftables.Rule) (drops bool, target string) {
	for _, e := range r.Exprs {
		switch e := e.(type) {
		case *expr.Counter, *expr.Log:
		case *expr.Match:
			if e.Name != "comment" {
				return false, ""
			}
		case *expr.Reject:
			return true, ""
		case *expr.Target: // of iptables
			return e.Name == "REJECT" || e.Name == "DROP", ""
		case *expr.Verdict:
			return e.Kind == expr.VerdictDrop, e.Chain
		default:
			return false, ""
		}
	}
	return false, ""
}

// markOf is the name of the Network's table whose rule it is, "" for one of
// another program. It is the rule's comment, for who lists rules; iptables'
// saved rules have it in its own form.
func markOf(r *nftables.Rule) string {
	mark, _ := userdata.GetString(r.UserData, userdata.TypeComment)
	for _, e := range r.Exprs {
		if m, ok := e.(*expr.Match); ok && m.Name == "comment" {
			if c, ok := m.Info.(*xt.Comment); ok {
				mark = string(*c)
			}
		}
	}
	if mark = strings.TrimRight(mark, "\x00"); strings.HasPrefix(mark, tablePrefix) {
		return mark
	}
	return ""
}

// admit adds rules to the chains of others that drop containers' packets: they
// accept what comes through containers' links and what goes there, since our own
// table refuses what is not allowed. They come after all rules but the one that
// drops everything, so what another program drops by name is still dropped. It
// returns the chains that it changed, and whether firewalld drops those packets, which
// must be asked instead.
func (f *firewall) admit() (changed []string, refused bool, err error) {
	err = f.withForeign(func(s ruleset) error {
		runs, trusts, firewalldErr := s.firewalld(f.subnet)
		refused = runs && !trusts && firewalldErr == nil
		changed, err = f.admitAll(s)
		return errors.Join(err, firewalldErr)
	})
	return changed, refused, err
}

// withForeign calls use with what others have in the kernel.
func (f *firewall) withForeign(use func(ruleset) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.retry(func() error {
		s, err := foreign(f.conn)
		if err != nil {
			return err
		}
		return use(s)
	})
}

func (f *firewall) admitAll(s ruleset) (changed []string, err error) {
	closed, err := s.closings()
	if err != nil {
		return nil, err
	}
	for _, c := range closed {
		if c.chain.Table.Name != firewalldTable && !slices.ContainsFunc(c.rules, func(r *nftables.Rule) bool { return markOf(r) == f.table.Name }) {
			f.open(c)
			changed = append(changed, c.String())
		}
	}
	if len(changed) == 0 {
		return nil, nil
	}
	return changed, f.conn.Flush()
}

// open adds the rules to a chain: before the one that drops all, or at the end.
// They have the form that iptables gives its own, which it can list.
func (f *firewall) open(c closing) {
	matches := map[nftables.ChainHook][][]expr.Any{
		*nftables.ChainHookInput:   {f.from()},
		*nftables.ChainHookForward: {f.from(), f.to()},
		*nftables.ChainHookOutput:  {f.to()},
	}
	for _, match := range matches[*c.chain.Hooknum] {
		r := &nftables.Rule{
			Table: c.chain.Table, Chain: c.chain, UserData: userdata.AppendString(nil, userdata.TypeComment, f.table.Name),
			Exprs: slices.Concat(match, []expr.Any{&expr.Counter{}}, accept()),
		}
		if c.end == nil {
			f.conn.AddRule(r)
		} else {
			r.Position = c.end.Handle
			f.conn.InsertRule(r)
		}
	}
}

// marked are the rules of Networks in others' chains.
func (s ruleset) marked() (found []*nftables.Rule, err error) {
	for _, c := range s.gates() {
		rules, err := s.rules(c)
		if err != nil {
			return nil, err
		}
		found = append(found, slices.DeleteFunc(rules, func(r *nftables.Rule) bool { return markOf(r) == "" })...)
	}
	return found, nil
}

// withdraw deletes the rules that admit added.
func (f *firewall) withdraw() error {
	s, err := foreign(f.conn)
	if err != nil {
		return err
	}
	rules, err := s.marked()
	if err != nil {
		return err
	}
	for _, r := range rules {
		if markOf(r) == f.table.Name {
			if err := f.conn.DelRule(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// A zone of firewalld that accepts all is asked for a subnet by its own command:
// firewalld replaces its chains whenever it reads its configuration.
const (
	trustedZone   = "trusted"
	addSource     = "--add-source="
	removeSource  = "--remove-source="
	firewalldTime = 30 * time.Second
)

// firewalld reports whether firewalld runs, and whether it accepts what comes
// from the subnet: by a rule that leads its packets to the chain of the zone.
func (s ruleset) firewalld(subnet netip.Prefix) (runs, trusts bool, err error) {
	for _, c := range s.chains {
		if c.Table.Name != firewalldTable || c.Name != "filter_FORWARD_ZONES" && c.Name != "filter_FORWARD_POLICIES" {
			continue
		}
		runs = true
		rules, err := s.rules(c)
		if err != nil {
			return true, false, err
		}
		trusts = trusts || slices.ContainsFunc(rules, func(r *nftables.Rule) bool { return leads(r, subnet) })
	}
	return runs, trusts, nil
}

// leads reports whether a rule leads what comes from the subnet to the chain of
// the zone that accepts all. The kernel compares whole bytes of an address where
// the subnet ends with one.
func leads(r *nftables.Rule, subnet netip.Prefix) bool {
	var from, there bool
	for _, e := range r.Exprs {
		switch e := e.(type) {
		case *expr.Cmp:
			address := subnet.Addr().AsSlice()
			from = from || slices.Equal(e.Data, address) || slices.Equal(e.Data, address[:subnet.Bits()/8])
		case *expr.Verdict:
			there = strings.HasSuffix(e.Chain, "_"+trustedZone)
		}
	}
	return from && there
}

// firewalld looks for firewalld, as ruleset.firewalld.
func (f *firewall) firewalld() (runs, trusts bool, err error) {
	err = f.withForeign(func(s ruleset) error {
		runs, trusts, err = s.firewalld(f.subnet)
		return err
	})
	return runs, trusts, err
}

// askFirewalld adds the subnet to the zone, or removes it from there.
func askFirewalld(ctx context.Context, action string, subnet netip.Prefix) error {
	ctx, cancel := context.WithTimeout(ctx, firewalldTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, "firewall-cmd", "--zone="+trustedZone, action+subnet.String()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("firewalld did not take the containers' subnet into its zone %s or out of it: %w: %s", trustedZone, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// FirewalldFix is the command by which an operator lets firewalld accept the
// packets of containers.
func FirewalldFix(subnet netip.Prefix) string {
	return fmt.Sprintf("sudo firewall-cmd --permanent --zone=%s --add-source=%s && sudo firewall-cmd --reload", trustedZone, subnet)
}
