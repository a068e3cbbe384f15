package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const aliased = `
name: cf
releases:
- {name: nats, version: "1", url: docker.io/x, stemcell: {os: a, version: "1"}}
- {name: bosh-dns-aliases, version: "1", url: https://bosh.io/d/aliases.tgz}
instance_groups:
- name: nats
  instances: 1
  jobs:
  - {name: nats, release: nats, provides: {nats: {aliases: [{domain: Links.internal, health_filter: all}, {domain: _.links.internal, placeholder_type: uuid}]}}}
addons:
- name: names
  jobs:
  - name: bosh-dns-aliases
    release: bosh-dns-aliases
    properties:
      aliases:
      - domain: NATS.internal.
        targets:
        - {query: '*', instance_group: nats, deployment: cf, network: default, domain: bosh}
        - {query: q-s3i1, instance_group: na*, deployment: other}
- name: nowhere
  include: {instance_groups: [x]}
  jobs:
  - {name: bosh-dns-aliases, release: bosh-dns-aliases, properties: {aliases: [{domain: x, targets: [{query: '*', instance_group: nats}]}]}}
`

func TestAliases(t *testing.T) {
	m, found := check([]byte(aliased), Options{Strict: true, Given: []string{}})
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	want := []Alias{
		{"_.links.internal", []AliasTarget{{"_", "nats", "cf"}}},
		{"links.internal", []AliasTarget{{"q-s4", "nats", "cf"}}},
		{"nats.internal", []AliasTarget{{"*", "nats", "cf"}, {"q-s3i1", "na*", "other"}}},
	}
	if diff := cmp.Diff(want, m.Aliases()); diff != "" {
		t.Error(diff)
	}
	if jobs := m.WithAddons().InstanceGroups[0].Jobs; len(jobs) != 1 {
		t.Errorf("got %d jobs; want nothing to run for names", len(jobs))
	}
	if q, err := want[2].Targets[1].Parsed(); err != nil || q.Each || q.Health != Healthy || !cmp.Equal(q.Indexes, []string{"1"}) {
		t.Errorf("got %+v, %v", q, err)
	}
	if target := want[2].Targets[1]; !target.Matches("OTHER", "na_ts") || target.Matches("cf", "nats") || target.Matches("other", "x") {
		t.Error("want deployment and group compared as bosh-dns does")
	}
}

func TestAliasesSayWhatIsWrong(t *testing.T) {
	const path = "/addons/name=names/jobs/name=bosh-dns-aliases/properties/aliases"
	const link = "/instance_groups/name=nats/jobs/name=nats/provides/nats/aliases/"
	for _, test := range []struct{ old, now, want string }{
		{"domain: NATS.internal.", "domain: '-x'", path + `/0: "-x" is not a valid DNS name`},
		{"query: '*', instance_group: nats, deployment: cf", "query: q-a1, instance_group: nats, deployment: cf", path + "/0/targets/0: query \"q-a1\" is none that is answered here; " +
			"give *, _, or q- with the criteria s (0, 1, 3 or 4) and i (an index), like q-s3"},
		{"q-s3i1", "q-s2", path + `/0/targets/1: query "q-s2" asks for health 2; it is 0 (smart), 1 (unhealthy), 3 (healthy) or 4 (all)`},
		{"q-s3i1", "_", path + "/0/targets/1: query _ belongs to domains that begin with _., and these have no other"},
		{"query: q-s3i1, instance_group: na*, ", "query: q-s3i1, ", path + "/0/targets/1: the target needs query and instance_group"},
		{"instance_group: nats, deployment: cf", "instance_group: natz, deployment: cf", path + `/0/targets/0: there is no instance group "natz" (did you mean "nats"?)`},
		{"health_filter: all", "health_filter: x", link + `domain=Links.internal: health_filter is smart, healthy, unhealthy or all, not "x"`},
		{"domain: _.links.internal", "domain: links", link + "domain=links: with placeholder_type the domain begins with _., for which each instance has its own name"},
	} {
		if !strings.Contains(aliased, test.old) {
			t.Fatalf("the example has no %q", test.old)
		}
		_, found := check([]byte(strings.Replace(aliased, test.old, test.now, 1)), Options{Given: []string{}})
		var got []string
		for _, f := range found {
			if f.Level != Info {
				got = append(got, f.String())
			}
		}
		if diff := cmp.Diff([]string{test.want}, got); diff != "" {
			t.Errorf("%s: %s", test.now, diff)
		}
	}
}
