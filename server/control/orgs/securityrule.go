package orgs

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"cupola/runtime/pattern"
	"cupola/server/control"
	"cupola/store/cf"
)

// maxDestinations bounds the comma-separated destinations of a rule, as Cloud
// Controller does.
const maxDestinations = 6000

var ruleFields = []string{"code", "description", "destination", "log", "ports", "protocol", "type"}

// RuleFaults are Cloud Controller's messages for what is wrong with the rules of a
// security group.
func RuleFaults(raw json.RawMessage) []string {
	_, faults := parseRules(raw)
	return faults
}

// parseRules reads the rules of a security group; faults are Cloud
// Controller's messages for those that are none.
func parseRules(raw json.RawMessage) (rules []cf.SecurityRule, faults []string) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil, []string{"Rules must be an array"}
	}
	for i, one := range list {
		rule, why := parseRule(one)
		for _, f := range why {
			faults = append(faults, fmt.Sprintf("Rules[%d]: %s", i, f))
		}
		rules = append(rules, rule)
	}
	return rules, faults
}

func parseRule(raw json.RawMessage) (rule cf.SecurityRule, faults []string) {
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return rule, []string{"must be an object"}
	}
	faults = append(faults, unknownRuleFields(fields)...)
	rule.Protocol, _ = fields["protocol"].(string)
	if !slices.Contains([]string{"tcp", "udp", "icmp", "icmpv6", "all"}, rule.Protocol) {
		faults = append(faults, "protocol must be 'tcp', 'udp', 'icmp', 'icmpv6' or 'all'")
	}
	var why []string
	rule.Destination, why = ruleDestination(fields["destination"])
	faults = append(faults, why...)
	var isText, isBool bool
	if rule.Description, isText = fields["description"].(string); !isText && fields["description"] != nil {
		faults = append(faults, "description must be a string")
	}
	if rule.Log, isBool = fields["log"].(bool); !isBool && fields["log"] != nil {
		faults = append(faults, "log must be a boolean")
	}
	return rule, append(faults, ruleDetails(&rule, fields)...)
}

func unknownRuleFields(fields map[string]any) []string {
	var unknown []string
	for k := range fields {
		if !slices.Contains(ruleFields, k) {
			unknown = append(unknown, k)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return []string{"unknown field(s): " + control.Inspect(unknown)}
}

// ruleDetails reads the fields that only some protocols have.
func ruleDetails(rule *cf.SecurityRule, fields map[string]any) []string {
	ports, given := fields["ports"]
	rule.Ports, _ = ports.(string)
	switch rule.Protocol {
	case "tcp", "udp":
		return control.Must(given, "ports are required for protocols of type TCP and UDP",
			validPorts(rule.Ports), "ports must be a valid single port, comma separated list of ports, or range or ports, formatted as a string")
	case "icmpv6":
		return []string{"icmpv6 cannot be used if enable_ipv6 is false"}
	case "icmp":
		rule.Code, rule.Type = icmpNumber(fields["code"]), icmpNumber(fields["type"])
		return control.Must(fields["code"] != nil, "code is required for protocols of type ICMP",
			rule.Code != nil, "code must be an integer between -1 and 255 (inclusive)",
			fields["type"] != nil, "type is required for protocols of type ICMP",
			rule.Type != nil, "type must be an integer between -1 and 255 (inclusive)")
	case "all":
		return control.Must(!given || ports == nil, "ports are not allowed for protocols of type all")
	}
	return nil
}

func icmpNumber(v any) *int {
	f, ok := v.(float64)
	n := int(f)
	if !ok || float64(n) != f || n < -1 || n > 255 {
		return nil
	}
	return &n
}

var portRange = pattern.Lazy(`^\s*(\d+)\s*-\s*(\d+)\s*$`)

// validPorts takes a port, a list of ports or a range.
func validPorts(text string) bool {
	if m := portRange().FindStringSubmatch(text); m != nil {
		return validPort(m[1]) && validPort(m[2]) && port(m[1]) < port(m[2])
	}
	return !slices.ContainsFunc(strings.Split(text, ","), func(p string) bool { return !validPort(p) })
}

func validPort(text string) bool { n := port(text); return n > 0 && n < 65536 }

func port(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0
	}
	return n
}

func ruleDestination(v any) (text string, faults []string) {
	if v == nil {
		return "", []string{"nil destination; destination must be a comma-delimited list of valid CIDRs, IP addresses, or IP address ranges"}
	}
	text, ok := v.(string)
	switch {
	case !ok:
		return "", []string{"destination must be a string"}
	case strings.ContainsAny(text, " \t\r\n\v\f"):
		return "", []string{"destination must not contain whitespace"}
	}
	list := strings.Split(text, ",")
	if len(list) > maxDestinations {
		return "", []string{fmt.Sprintf("maximum destinations per rule exceeded - must be under %d", maxDestinations)}
	}
	for _, d := range list {
		faults = append(faults, destinationFaults(d)...)
	}
	return text, faults
}

const badDestination = "destination must contain valid CIDR(s), IP address(es), or IP address range(s)"

// destinationFaults reports what is wrong with an address, a network or a range.
func destinationFaults(d string) []string {
	from, to, isRange := strings.Cut(d, "-")
	switch {
	case d == "":
		return []string{"empty destination specified in comma-delimited list", badDestination}
	case leadingZeros(from) || leadingZeros(to):
		return []string{"destination octets cannot contain leading zeros"}
	case strings.Contains(to, "-"):
		return []string{badDestination}
	case isRange:
		return rangeFaults(from, to)
	}
	if p, err := netip.ParsePrefix(from); err == nil && p.Addr().Is4() {
		return nil
	}
	if a, err := netip.ParseAddr(from); err == nil && a.Is4() {
		return nil
	}
	return []string{badDestination}
}

func rangeFaults(from, to string) []string {
	a, err := netip.ParseAddr(from)
	b, err2 := netip.ParseAddr(to)
	switch {
	case err != nil || err2 != nil || !a.Is4() || !b.Is4():
		return []string{"destination IP address range is invalid"}
	case b.Less(a):
		return []string{"beginning of IP address range is numerically greater than the end of its range (range endpoints are inverted)"}
	}
	return nil
}

func leadingZeros(address string) bool {
	host, _, _ := strings.Cut(address, "/")
	return slices.ContainsFunc(strings.Split(host, "."), func(octet string) bool { return len(octet) > 1 && octet[0] == '0' })
}
