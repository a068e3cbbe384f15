package ingress

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
	"cupola/server/bosh/manifest"
	"cupola/server/dns"
	"cupola/store/cf"
)

// deployed is a deployment of a group of instances with two processes each: what
// of the instances is seen is each instance's role.
func deployed(roles ...lrp.Role) (names deployments, actuals []*lrp.Actual) {
	d := &cf.BOSHDeployment{Resource: cf.Resource{GUID: "d"}, Name: "nats"}
	names = deployments{all: []*cf.BOSHDeployment{d}}
	for n, role := range roles {
		names.instances = append(names.instances, &cf.BOSHInstance{Resource: cf.Resource{GUID: "guid-" + string(rune('0'+n))}, DeploymentGUID: "d", Group: "db", Index: n, Lifecycle: "service", Phase: cf.BOSHRunning})
		prefix := "nats.db." + string(rune('0'+n)) + ".job."
		of := func(process string, role lrp.Role) *lrp.Actual {
			return &lrp.Actual{Key: lrp.Key{ProcessGUID: prefix + process + ".digest"}, Owner: lrp.Owner{GUID: names.instances[n].GUID, Part: "job/" + process}, State: lrp.Running, Ready: true, Role: role, Address: "10.0.0." + string(rune('0'+n))}
		}
		actuals = append(actuals, of("one", role), of("side", lrp.NoRole))
	}
	return names, actuals
}

func emptyTable() dns.Table {
	return dns.Table{Hosts: map[string][]dns.Host{}, Names: map[string]bool{}}
}

func hostsOf(hosts []dns.Host) (all []string) {
	for _, h := range hosts {
		all = append(all, h.Address.String())
	}
	return all
}

func TestTheGroupsNameLeadsToTheActiveInstance(t *testing.T) {
	for _, test := range []struct {
		name  string
		roles []lrp.Role
		want  []string
	}{
		{"no roles", []lrp.Role{"", ""}, []string{"10.0.0.0", "10.0.0.1"}},
		{"one is active", []lrp.Role{lrp.Passive, lrp.Active, lrp.Passive}, []string{"10.0.0.1"}},
		{"none is", []lrp.Role{lrp.Passive, lrp.Passive}, nil},
		{"two say so", []lrp.Role{lrp.Passive, lrp.Active, lrp.Active}, []string{"10.0.0.1"}},
		{"an update brings roles", []lrp.Role{lrp.Passive, lrp.NoRole, lrp.NoRole}, []string{"10.0.0.1"}},
	} {
		b, actuals := deployed(test.roles...)
		table := emptyTable()
		b.add(&table, actuals)
		for _, name := range []string{"nats-db", "nats-db.default.svc.cluster.local"} {
			if diff := cmp.Diff(test.want, hostsOf(table.Hosts[name])); diff != "" {
				t.Errorf("%s: %s: %s", test.name, name, diff)
			}
		}
		if got := hostsOf(table.Hosts["nats-db-1"]); !cmp.Equal(got, []string{"10.0.0.1"}) {
			t.Errorf("%s: got %v; want an instance by its own name, whatever its role", test.name, got)
		}
	}
}

func TestOnlyReadyInstancesHaveNames(t *testing.T) {
	b, actuals := deployed(lrp.NoRole, lrp.NoRole)
	actuals[1].Ready = false
	table := emptyTable()
	b.add(&table, actuals)
	if got := hostsOf(table.Hosts["nats-db"]); !cmp.Equal(got, []string{"10.0.0.1"}) || table.Hosts["nats-db-0"] != nil {
		t.Errorf("got %v, %v; want the second alone", got, table.Hosts["nats-db-0"])
	}
}

func TestAliases(t *testing.T) {
	target := func(query string) []manifest.AliasTarget {
		return []manifest.AliasTarget{{Query: query, Group: "d*", Deployment: "NATS"}}
	}
	b, actuals := deployed(lrp.NoRole, lrp.NoRole, lrp.NoRole)
	actuals[2].Ready = false // of the second
	b.aliases = []manifest.Alias{
		{Domain: "smart.internal", Targets: target("*")},
		{Domain: "healthy.internal", Targets: target("q-s3")},
		{Domain: "ill.internal", Targets: target("q-s1")},
		{Domain: "all.internal", Targets: target("q-s4")},
		{Domain: "third.internal", Targets: target("q-s3i2y0")},
		{Domain: "smart.internal", Targets: target("q-s1")}, // somebody else's
		{Domain: "nobody.internal", Targets: []manifest.AliasTarget{{Query: "*", Group: "x", Deployment: "nats"}}},
		{Domain: "_.cell.internal", Targets: target("_")},
		{Domain: "nats-db", Targets: target("q-s1")}, // of the group
	}
	table := emptyTable()
	b.add(&table, actuals)
	for name, want := range map[string][]string{
		"smart.internal": {"10.0.0.0", "10.0.0.2"}, "healthy.internal": {"10.0.0.0", "10.0.0.2"}, "ill.internal": {"10.0.0.1"},
		"all.internal": {"10.0.0.0", "10.0.0.1", "10.0.0.2"}, "third.internal": {"10.0.0.2"}, "nobody.internal": nil,
		"db-1.cell.internal": {"10.0.0.1"}, "db-2-job.cell.internal": {"10.0.0.2"}, "guid-0.cell.internal": {"10.0.0.0"}, "x.cell.internal": nil,
		"nats-db": {"10.0.0.0", "10.0.0.2"},
	} {
		if diff := cmp.Diff(want, hostsOf(table.Hosts[name])); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if !table.Names["nobody.internal"] || table.Names["internal"] {
		t.Errorf("got %v; want the names that are ours, and no more", table.Names)
	}
}

func TestAliasesOfNobodyHealthy(t *testing.T) {
	b, actuals := deployed(lrp.NoRole)
	actuals[0].Ready = false
	b.aliases = []manifest.Alias{{Domain: "a", Targets: []manifest.AliasTarget{{Query: "*", Group: "db", Deployment: "nats"}}},
		{Domain: "b", Targets: []manifest.AliasTarget{{Query: "q-s3", Group: "db", Deployment: "nats"}}}}
	table := emptyTable()
	b.add(&table, actuals)
	if got := hostsOf(table.Hosts["a"]); len(got) != 1 || table.Hosts["b"] != nil {
		t.Errorf("got %v, %v; want * to lead to all then, and q-s3 to none", got, table.Hosts["b"])
	}
}

func TestAliasesLeadToTheActiveInstance(t *testing.T) {
	b, actuals := deployed(lrp.Passive, lrp.Active)
	for domain, query := range map[string]string{"a": "*", "b": "q-s4", "c": "q-s0i0"} {
		b.aliases = append(b.aliases, manifest.Alias{Domain: domain, Targets: []manifest.AliasTarget{{Query: query, Group: "db", Deployment: "nats"}}})
	}
	table := emptyTable()
	b.add(&table, actuals)
	for domain, want := range map[string]string{"a": "10.0.0.1", "b": "10.0.0.1", "c": "10.0.0.0"} {
		if got := hostsOf(table.Hosts[domain]); !cmp.Equal(got, []string{want}) {
			t.Errorf("%s: got %v; want %s", domain, got, want)
		}
	}
}

// TestGroupsWhoseNamesBeginAlike gives each group its own addresses: "web/1" begins
// the names of what runs of "web.1/0".
func TestGroupsWhoseNamesBeginAlike(t *testing.T) {
	b := deployments{all: []*cf.BOSHDeployment{{Resource: cf.Resource{GUID: "d"}, Name: "site"}}}
	var actuals []*lrp.Actual
	for _, i := range []struct {
		group   string
		index   int
		address string
	}{{"web", 1, "10.0.0.1"}, {"web.1", 0, "10.0.0.2"}} {
		guid := i.group + "-guid"
		b.instances = append(b.instances, &cf.BOSHInstance{Resource: cf.Resource{GUID: guid}, DeploymentGUID: "d", Group: i.group, Index: i.index, Lifecycle: "service", Phase: cf.BOSHRunning})
		actuals = append(actuals, &lrp.Actual{Key: lrp.Key{ProcessGUID: fmt.Sprintf("site.%s.%d.job.one.digest", i.group, i.index)}, Owner: lrp.Owner{GUID: guid, Part: "job/one"},
			State: lrp.Running, Ready: true, Address: i.address})
	}
	table := emptyTable()
	b.add(&table, actuals)
	if got := hostsOf(table.Hosts["site-web"]); !cmp.Equal(got, []string{"10.0.0.1"}) {
		t.Errorf("web: got %v", got)
	}
	if got := hostsOf(table.Hosts["site-web1-0"]); !cmp.Equal(got, []string{"10.0.0.2"}) {
		t.Errorf("web.1/0: got %v of %v", got, table.Hosts)
	}
}
