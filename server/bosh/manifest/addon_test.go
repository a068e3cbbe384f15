package manifest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAddonsGoWhereBOSHPutsThem has for every rule the groups that it picks.
func TestAddonsGoWhereBOSHPutsThem(t *testing.T) {
	const groups = `
name: dep
releases:
- {name: r, version: "1", url: a/b, stemcell: {os: jammy, version: "1"}}
- {name: s, version: "1", url: a/b, stemcell: {os: sle, version: "2"}}
instance_groups:
- {name: one, azs: [z1], networks: [{name: n1}], jobs: [{name: a, release: r}, {name: b, release: s}]}
- {name: two, azs: [z2], networks: [{name: n2}], jobs: [{name: a, release: s}]}
- {name: err, azs: [z1], lifecycle: errand, jobs: [{name: a, release: r}]}
- {name: auto, lifecycle: auto-errand, jobs: [{name: c, release: r}]}
addons:
- name: x
  jobs: [{name: added, release: r}]
`
	for _, c := range []struct {
		rules string
		want  []string
	}{
		{``, []string{"one", "two"}},
		{`include: {}`, []string{"one", "two"}},
		{`include: {jobs: [{name: a, release: r}]}`, []string{"one"}},
		{`include: {jobs: [{name: a}]}`, []string{"one", "two"}},
		{`include: {jobs: [{release: s}]}`, []string{"one", "two"}},
		{`include: {instance_groups: [two, err]}`, []string{"two"}},
		{`include: {jobs: [{name: a}], azs: [z2]}`, []string{"two"}},
		{`include: {networks: [n1, n9]}`, []string{"one"}},
		{`include: {stemcell: [{os: sle}]}`, []string{"one", "two"}},
		{`include: {stemcell: [{os: sle, version: "1"}]}`, nil},
		{`include: {deployments: [dep]}`, []string{"one", "two"}},
		{`include: {deployments: [other]}`, nil},
		{`include: {teams: [t]}`, nil},
		{`include: {lifecycle: errand}`, []string{"err"}},
		{`include: {lifecycle: auto-errand}`, []string{"auto"}},
		{`include: {lifecycle: service, azs: [z1]}`, []string{"one"}},
		{`exclude: {azs: [z1]}`, []string{"two"}},
		{`exclude: {azs: [z1], jobs: [{name: zz}]}`, []string{"one", "two"}},
		{`include: {jobs: [{name: a}]}
  exclude: {instance_groups: [one]}`, []string{"two"}},
	} {
		m, found := Parse([]byte(groups + "  " + c.rules + "\n"))
		if found != nil {
			t.Fatalf("%s: %s", c.rules, format(found))
		}
		var got []string
		for _, g := range m.WithAddons().InstanceGroups {
			if j := g.job("added"); j != nil {
				got = append(got, g.Name)
				if j.Addon != "x" || g.Jobs[len(g.Jobs)-1] != j {
					t.Errorf("got %+v in %s", j, g.Name)
				}
			}
			if m.Group(g.Name).job("added") != nil {
				t.Errorf("%s: the manifest itself was changed", c.rules)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.rules, diff)
		}
	}
}

func TestJobsAreNotPlacedTwice(t *testing.T) {
	m, _ := Parse([]byte(`
instance_groups: [{name: one, jobs: [{name: a, release: own}]}]
addons: [{name: x, jobs: [{name: a, release: r}, {name: b, release: r}]}, {name: y, jobs: [{name: b, release: s}]}]
`))
	var got []string
	for _, j := range m.WithAddons().InstanceGroups[0].Jobs {
		got = append(got, fmt.Sprint(j.Name, " ", j.Release))
	}
	if diff := cmp.Diff([]string{"a own", "b r"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestImage(t *testing.T) {
	// The example of the document that BOSH on Kubernetes began with.
	m, found := Parse([]byte(`
stemcells: [{alias: default, os: opensuse-42.3, version: 28.g837c5b3-30.263-7.0.0_234.gcd7d1132}]
releases:
- name: cflinuxfs3
  version: 0.62.0
  url: registry.example.com/cfcontainerization/
  stemcell: {os: opensuse-15.0, version: 28.g837c5b3-30.263-7.0.0_233.gde0accd0}
  credentials: {username: u, password: p}
- {name: plain, version: 1, url: docker://localhost:5000/a}
- {name: here, version: 1, url: file:///srv/images/here.tar}
instance_groups:
- {name: diego-cell, stemcell: default, jobs: [{name: a, release: cflinuxfs3}, {name: b, release: plain}, {name: c, release: here}]}
`))
	if found != nil {
		t.Fatal(format(found))
	}
	g := m.InstanceGroups[0]
	for i, want := range []Image{
		{Reference: "registry.example.com/cfcontainerization/cflinuxfs3:opensuse-15.0-28.g837c5b3-30.263-7.0.0_233.gde0accd0-0.62.0", Credentials: Credentials{"u", "p"}},
		{Reference: "localhost:5000/a/plain:opensuse-42.3-28.g837c5b3-30.263-7.0.0_234.gcd7d1132-1"},
		{Reference: "/srv/images/here.tar", Local: true},
	} {
		if got, err := m.Image(g, g.Jobs[i]); err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
}

func TestUpdate(t *testing.T) {
	m, _ := Parse([]byte(`
update: {canaries: 30%, max_in_flight: 1, canary_watch_time: 1000-30000, update_watch_time: "5000", serial: true}
instance_groups: [{name: a, update: {max_in_flight: 50%, serial: false}}]
`))
	u := m.UpdateOf(m.InstanceGroups[0])
	for n, want := range map[int][2]int{1: {1, 1}, 2: {1, 1}, 10: {3, 5}, 0: {0, 0}} {
		if got := [2]int{u.CanariesOf(n), u.MaxInFlightOf(n)}; got != want {
			t.Errorf("of %d: got %v; want %v", n, got, want)
		}
	}
	if u.InSerial() || !m.Update.InSerial() || (Update{}).InSerial() || (Update{}).CanariesOf(5) != 0 || (Update{}).MaxInFlightOf(5) != 1 {
		t.Errorf("got %+v", u)
	}
	if got, want := fmt.Sprint(*u.CanaryWatch, *u.UpdateWatch), "{1s 30s} {5s 5s}"; got != want {
		t.Errorf("got %s; want %s", got, want)
	}
}

// TestBuiltInJobs deploys the jobs bpm and bosh-dns-aliases as public manifests name them:
// their releases need not be here.
func TestBuiltInJobs(t *testing.T) {
	m, found := Parse([]byte(`
name: dep
releases:
- {name: bpm, version: 1.1.8, url: "git+https://example.com/bpm-release", sha1: c956394fce7e74f741e4ae8c256b480904ad5942}
- {name: bosh-dns-aliases, version: 0.0.3}
- {name: r, version: "1"}
stemcells: [{alias: default, os: ubuntu-jammy, version: latest}]
addons:
- {name: bpm, jobs: [{name: bpm, release: bpm}]}
- {name: names, jobs: [{name: bosh-dns-aliases, release: bosh-dns-aliases, properties: {aliases: []}}]}
instance_groups:
- {name: one, stemcell: default, jobs: [{name: bpm, release: bpm}, {name: a, release: r}, {name: bpm, release: r}]}
- {name: two, stemcell: default, jobs: [{name: b, release: r}]}
`))
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range m.WithAddons().InstanceGroups {
		for _, j := range g.Jobs {
			got = append(got, g.Name+" "+j.Release+"/"+j.Name)
		}
	}
	if diff := cmp.Diff([]string{"one r/a", "one r/bpm", "two r/b"}, got); diff != "" {
		t.Error(diff)
	}
}
