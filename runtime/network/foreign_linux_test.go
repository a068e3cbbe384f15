package network

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// apart runs the test once more, in a network namespace of its own, and reports
// whether this is that run.
func apart(t *testing.T) bool {
	t.Helper()
	needRoot(t)
	const variable = "NETWORK_TEST_APART"
	if os.Getenv(variable) != "" {
		run(t, "ip link set lo up")
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

func run(t *testing.T, script string) string {
	t.Helper()
	out, err := exec.Command("sh", "-ec", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// foreignFirewalls are those that people have on their machines, with a rule
// that refuses port 81 by name, and one that lets answers through where input or
// forwarding is closed, as all of them have.
var foreignFirewalls = map[string]string{
	"docker": `
iptables -N DOCKER-USER && iptables -A DOCKER-USER -p tcp --dport 81 -j REJECT --reject-with tcp-reset && iptables -A DOCKER-USER -j RETURN
iptables -A FORWARD -j DOCKER-USER && iptables -P FORWARD DROP`,
	"ufw": `
iptables -N ufw-before && iptables -A ufw-before -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT && iptables -A ufw-before -p tcp --dport 81 -j REJECT --reject-with tcp-reset
iptables -N ufw-reject && iptables -A ufw-reject -j REJECT
for c in INPUT FORWARD OUTPUT; do iptables -A $c -j ufw-before; iptables -A $c -j ufw-reject; iptables -P $c DROP; done`,
	"services of Red Hat": `
for c in INPUT FORWARD; do
iptables -A $c -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
iptables -A $c -p tcp --dport 81 -j REJECT --reject-with tcp-reset
iptables -A $c -m comment --comment 'all the rest' -j REJECT --reject-with icmp-host-prohibited
done`,
	"nft": `nft -f - <<'RULES'
table inet filter {
	chain input { type filter hook input priority 0; policy drop; ct state established,related accept; tcp dport 81 reject with tcp reset; }
	chain forward { type filter hook forward priority 0; policy drop; ct state established,related accept; tcp dport 81 reject with tcp reset; }
	chain output { type filter hook output priority 0; policy drop; ct state established,related accept; }
}
RULES`,
}

// TestForeignFirewalls has containers reach what they may where another firewall
// drops what it does not know.
func TestForeignFirewalls(t *testing.T) {
	if !apart(t) {
		return
	}
	cfg := testConfig(t, 24)
	cfg.Names = true
	t.Cleanup(func() {
		if s, err := Look(); err != nil || len(s.Rules) > 0 {
			t.Errorf("got %+v, %v; want no rules after the network", s, err)
		}
	})
	n := newNetwork(t, cfg)
	w, a := newWorld(t, n), acquire(t, n, "a")
	for _, port := range []int{80, 81} {
		serve(t, w.netns, w.port(port))
	}
	names := a.Gateway.String() + ":53"
	serve(t, "", names)
	serve(t, a.NetNS, ":80")
	set(t, n, a.allow(rule(t, "tcp", w.addr.String(), "80-81")))
	own := run(t, "nft list table ip "+cfg.Table)
	for name, script := range foreignFirewalls {
		run(t, script)
		if err := n.keep(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Log(name)
		wantReached(t, a, w.port(80), true)
		wantReached(t, a, w.port(81), false)
		wantReached(t, a, w.port(82), false)
		wantReached(t, a, names, true)
		if got, err := dial(a.Address.String() + ":80"); got != "hello" {
			t.Errorf("%s: from the host: got %q, %v; want hello", name, got, err)
		}
		if rules := run(t, "iptables -S"); strings.Contains(script, "iptables") && !strings.Contains(rules, "-i "+cfg.LinkPrefix+"+") {
			t.Errorf("%s: iptables lists no rule for containers:\n%s", name, rules)
		}
		s, err := Look()
		if err != nil || len(s.Rules) == 0 || len(s.Closed) == 0 || slices.ContainsFunc(s.Rules, func(r ForeignRule) bool { return r.Network != cfg.Table }) {
			t.Errorf("%s: got %+v, %v; want rules of %s", name, s, err, cfg.Table)
		}
		rules := len(s.Rules)
		if err := n.keep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s, err = Look(); err != nil || len(s.Rules) != rules {
			t.Errorf("%s: got %+v, %v; want the same %d rules", name, s, err, rules)
		}
		run(t, "for c in INPUT FORWARD OUTPUT; do iptables -P $c ACCEPT; done; iptables -F; iptables -X; nft delete table inet filter 2>/dev/null || true")
	}
	if now := run(t, "nft list table ip "+cfg.Table); now != own {
		t.Errorf("the own table changed from\n%s\nto\n%s", own, now)
	}
	run(t, foreignFirewalls["docker"])
	if err := n.keep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestRulesAreRestored has another program load its own rules in place of all
// others, turn off IP forwarding and remove the gateway's address.
func TestRulesAreRestored(t *testing.T) {
	if !apart(t) {
		return
	}
	n := newNetwork(t, testConfig(t, 24))
	w, a, b := newWorld(t, n), acquire(t, n, "a"), acquire(t, n, "b")
	for _, port := range []int{80, 81} {
		serve(t, w.netns, w.port(port))
	}
	host := w.host.String() + ":7080"
	serve(t, "", host)
	set(t, n, a.allow(rule(t, "tcp", w.addr.String(), "80")), b.allow(rule(t, "tcp", w.addr.String(), "81")))
	check := func() {
		t.Helper()
		wantReached(t, a, w.port(80), true)
		wantReached(t, a, w.port(81), false)
		wantReached(t, b, w.port(81), true)
		wantReached(t, b, host, false)
	}
	check()
	run(t, "nft flush ruleset; echo 0 > "+forwardControl)
	if err := n.keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	check()
	run(t, "ip address delete "+a.Gateway.String()+"/32 dev lo")
	if err := n.keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	check()
	serve(t, b.NetNS, ":80")
	if got, err := dial(b.Address.String() + ":80"); got != "hello" {
		t.Errorf("from the host: got %q, %v; want hello", got, err)
	}
	// What changes afterwards is set as well.
	if err := n.Release(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	run(t, "nft delete table ip "+n.cfg.Table)
	if err := n.keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantReached(t, a, w.port(80), true)
	set(t, n, a.allow(rule(t, "tcp", w.addr.String(), "81")))
	wantReached(t, a, w.port(81), true)
	wantReached(t, a, w.port(80), false)
}

// TestFirewalldRefuses has firewalld refuse, as it does without its command: the
// failure lasts, and so is logged once.
func TestFirewalldRefuses(t *testing.T) {
	if !apart(t) {
		return
	}
	n := newNetwork(t, testConfig(t, 24))
	n.stop()
	n.work.Wait()
	run(t, "nft add table inet firewalld && nft add chain inet firewalld filter_FORWARD_ZONES")
	t.Setenv("PATH", t.TempDir())
	first, second := n.keep(t.Context()), n.keep(t.Context())
	if first == nil || second == nil || first.Error() != second.Error() {
		t.Errorf("got %v, then %v; want one failure that lasts", first, second)
	}
}

// TestFirewalld has a table like firewalld's, and a command in place of its own
// that changes it as firewalld does.
func TestFirewalld(t *testing.T) {
	if !apart(t) {
		return
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	command := `#!/bin/sh -e
case "$1 $2" in
"--zone=trusted --add-source="*) nft insert rule inet firewalld filter_FORWARD_ZONES ip saddr "${2#--add-source=}" goto filter_FWD_trusted ;;
"--zone=trusted --remove-source="*) nft flush chain inet firewalld filter_FORWARD_ZONES ;;
*) exit 2 ;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "firewall-cmd"), []byte(command), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, bits := range []int{24, 21, 16} {
		t.Run(fmt.Sprint(bits), func(t *testing.T) { trustsSubnet(t, bits) })
	}
}

// trustsSubnet wants firewalld to accept a Network's subnet as long as the Network is there.
func trustsSubnet(t *testing.T, bits int) {
	run(t, `nft -f - <<'RULES'
table inet firewalld {
	chain filter_FWD_trusted { accept; }
	chain filter_FWD_public { reject with icmpx admin-prohibited; }
	chain filter_FORWARD_ZONES { goto filter_FWD_public; }
	chain filter_FORWARD {
		type filter hook forward priority 10; policy accept;
		ct state { established, related } accept
		jump filter_FORWARD_ZONES
		reject with icmpx admin-prohibited
	}
}
RULES`)
	n, err := New(testConfig(t, bits))
	if err != nil {
		t.Fatal(err)
	}
	w, a := newWorld(t, n), acquire(t, n, "a")
	serve(t, w.netns, w.port(80))
	set(t, n, a.allow(rule(t, "tcp", w.addr.String(), "80")))
	trusted := func() bool {
		t.Helper()
		runs, trusts, err := n.filter.firewalld()
		if err != nil || !runs {
			t.Fatalf("got %t, %v; want that firewalld runs", runs, err)
		}
		return trusts
	}
	eventually(t, "firewalld accepts the subnet", trusted)
	wantReached(t, a, w.port(80), true)
	tearDown(t, n)
	if trusted() {
		t.Error("firewalld still accepts the subnet")
	}
	run(t, "nft delete table inet firewalld")
}
