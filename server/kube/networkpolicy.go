package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	"cupola/runtime/lrp"
	"cupola/runtime/network"
)

// ReachGroups are the labels by which NetworkPolicies select a pod.
type ReachGroups struct {
	Egress string // of what it may connect to outside the cell
	Policy string // of its network policies; "" has none
}

// ReachGroupsOf are those of a container.
func ReachGroupsOf(c lrp.RunInfo) ReachGroups {
	g := ReachGroups{Egress: labelOf(strings.ReplaceAll(c.EgressGroup, "/", "."))}
	if c.EgressGroup == "" {
		text, _ := json.Marshal(c.Egress) // plain data
		g.Egress = "rules." + hashOf(string(text))
	}
	if c.PolicyGroup != "" {
		g.Policy = PolicyLabel(c.PolicyGroup)
	}
	return g
}

// PolicyLabel is the label of the pods in a policy group.
func PolicyLabel(group string) string { return labelOf(group) }

// labelOf is a name as the value of a label: itself, or its hash if it is not valid.
func labelOf(name string) string {
	if len(name) <= 63 && qualified().MatchString(name) {
		return name
	}
	return "sha256." + hashOf(name)
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:20])
}

// Reach renders what the pods of a cell may connect to, and what may connect to them, as NetworkPolicies.
// NetworkPolicies add up, and each is named by its content: one that changes is another one, which is made before
// the former is removed.
type Reach struct{ Pods InstanceOptions }

// Isolation keeps the pods from all but what other policies allow, the addresses that the router
// connects from, and the cluster's DNS.
func (r Reach) Isolation(routers []netip.Addr) Object {
	selector := doc{"matchLabels": r.cell(), "matchExpressions": []any{doc{"key": egressKey, "operator": "Exists"}}}
	spec := doc{"podSelector": selector, "policyTypes": []any{"Ingress", "Egress"}, "egress": []any{clusterDNS()}}
	routers = slices.Clone(routers)
	slices.SortFunc(routers, netip.Addr.Compare)
	var from []any
	for _, a := range slices.Compact(routers) {
		from = append(from, ipBlock(netip.PrefixFrom(a, a.BitLen())))
	}
	if len(from) > 0 {
		spec["ingress"] = []any{doc{"from": from}}
	}
	return r.object("isolation of the cell", spec)
}

// nodeLocalDNS is the address of NodeLocal DNSCache.
const nodeLocalDNS = "169.254.20.10/32"

func clusterDNS() doc {
	pods := doc{"namespaceSelector": doc{"matchLabels": doc{"kubernetes.io/metadata.name": "kube-system"}}, "podSelector": doc{"matchLabels": doc{"k8s-app": "kube-dns"}}}
	return doc{"to": []any{pods, ipBlock(netip.MustParsePrefix(nodeLocalDNS))},
		"ports": []any{doc{"protocol": "UDP", "port": 53}, doc{"protocol": "TCP", "port": 53}}}
}

// Egress lets the pods of a group connect to what the rules of its security groups allow. ICMP is left out: no NetworkPolicy
// allows it alone. It is nil where nothing is allowed.
func (r Reach) Egress(group string, rules []network.Rule) Object {
	var egress []any
	for _, rule := range rules {
		var to []any
		for _, d := range rule.Destinations {
			for _, p := range d.Prefixes() {
				to = append(to, ipBlock(p))
			}
		}
		if rule.Protocol == "icmp" || len(to) == 0 { // none would be all
			continue
		}
		allowed := doc{"to": to}
		if rule.Protocol != "all" {
			allowed["ports"] = portsOf(rule.Protocol, rule.Ports)
		}
		egress = append(egress, allowed)
	}
	if len(egress) == 0 {
		return nil
	}
	return r.object("security groups of "+group, r.selecting(egressKey, group, doc{"policyTypes": []any{"Egress"}, "egress": egress}))
}

// Stagings lets the pods that stage apps connect to the daemon, at the addresses where it serves their inputs. It is nil of none.
func (r Reach) Stagings(at []netip.AddrPort) Object {
	at = slices.Clone(at)
	slices.SortFunc(at, netip.AddrPort.Compare)
	var egress []any
	for _, a := range slices.Compact(at) {
		egress = append(egress, doc{"to": []any{ipBlock(netip.PrefixFrom(a.Addr(), a.Addr().BitLen()))}, "ports": []any{doc{"protocol": "TCP", "port": int(a.Port())}}})
	}
	if len(egress) == 0 {
		return nil
	}
	return r.object("registry of cupola", r.selecting(stagesKey, "true", doc{"policyTypes": []any{"Egress"}, "egress": egress}))
}

// Between lets the pods of a group connect to those of others, and those to it, as those of the network policies
// allow that name it. It is nil where none does.
func (r Reach) Between(group string, policies []lrp.NetworkPolicy) Object {
	var in, out []any
	for _, p := range policies {
		ports := portsOf(p.Protocol, []network.PortRange{{From: p.FirstPort, To: p.LastPort}})
		if PolicyLabel(p.Destination) == group {
			in = append(in, doc{"from": []any{r.podsOf(p.Source)}, "ports": ports})
		}
		if PolicyLabel(p.Source) == group {
			out = append(out, doc{"to": []any{r.podsOf(p.Destination)}, "ports": ports})
		}
	}
	if len(in)+len(out) == 0 {
		return nil
	}
	return r.object("network policies of "+group, r.selecting(policyKey, group, without(doc{"policyTypes": []any{"Ingress", "Egress"}, "ingress": in, "egress": out})))
}

// podsOf are the pods of a policy group, as a peer.
func (r Reach) podsOf(group string) doc {
	labels := r.cell()
	labels[policyKey] = PolicyLabel(group)
	return doc{"podSelector": doc{"matchLabels": labels}}
}

// selecting is the spec of a policy of the pods with a label.
func (r Reach) selecting(key, value string, spec doc) doc {
	labels := r.cell()
	labels[key] = value
	spec["podSelector"] = doc{"matchLabels": labels}
	return without(spec)
}

// cell are the labels of all pods of the cell.
func (r Reach) cell() doc { return doc{cellKey: r.Pods.Cell, ownerKey: r.Pods.Owner} }

// forKey is the annotation that says what a policy is made of.
const forKey = instancePrefix + "for"

// object is a NetworkPolicy.
func (r Reach) object(what string, spec doc) Object {
	labels := r.cell()
	labels[managedBy] = "cupola"
	meta := doc{"labels": labels, "annotations": doc{forKey: what}}
	content, _ := json.Marshal([]any{meta, spec}) // plain data
	meta["name"] = "cupola-" + hashOf(string(content))
	return Object{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": without(meta), "spec": spec}
}

func ipBlock(p netip.Prefix) doc { return doc{"ipBlock": doc{"cidr": p.String()}} }

// portsOf are the ports of a rule; none are all.
func portsOf(protocol string, ranges []network.PortRange) (all []any) {
	protocol = strings.ToUpper(protocol)
	for _, p := range ranges {
		port := doc{"protocol": protocol, "port": int(p.From)}
		if p.To != p.From {
			port["endPort"] = int(p.To)
		}
		all = append(all, port)
	}
	if len(all) == 0 {
		all = append(all, doc{"protocol": protocol})
	}
	return all
}

// Intact reports whether a NetworkPolicy still says what it was made with: its name stands for its content.
func Intact(policy Object) bool { return policy.Number("metadata", "generation") <= 1 }
