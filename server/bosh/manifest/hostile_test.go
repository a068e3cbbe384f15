package manifest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cupola/server/bosh/tree"
	"cupola/test/cputime"
)

// TestHostileManifestsEnd has manifests within the limits of trees that ask for
// as much work as can be.
func TestHostileManifestsEnd(t *testing.T) {
	repeat := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"unknown keys":    repeat("k%d: x\n", 10_000),
		"near keys":       repeat("instance_group%d: x\n", 6_000),
		"groups":          "instance_groups:\n" + repeat("- name: g%d\n", 6_000),
		"jobs":            "instance_groups:\n- name: a\n  jobs:\n" + repeat("  - {name: j%d}\n", 6_000),
		"releases":        "releases:\n" + repeat("- name: r%d\n", 6_000),
		"jobs, releases":  "releases:\n" + repeat("- name: r%d\n", 450) + "instance_groups:\n- name: a\n  jobs:\n" + repeat("  - {name: j%d, release: r-x}\n", 2000),
		"variables":       "variables:\n" + repeat("- {name: v%d, type: rsa}\n", 6_000),
		"chain of CAs":    "variables:\n" + repeat("- {name: v%d, type: certificate, options: {ca: v, is_ca: true}}\n", 2000),
		"references":      "variables:\n" + repeat("- {name: v%d, type: rsa}\n", 2000) + "tags:\n" + repeat("  t%d: ((w))((x))((v1.x))\n", 8_000),
		"other variables": "variables:\n" + repeat("- {name: v%d, type: rsa}\n", 2000) + "tags:\n" + repeat("  t: ((some-long-name-of-a-variable-%d))\n", 1) + repeat("  u%[1]d: ((some-long-name-of-a-variable-%[1]d))\n", 6_000),
		"instances":       "name: a\ninstance_groups:\n" + repeat("- {name: g%d, instances: 1000, azs: [a, b, c, d, e, f, g, h, i, j]}\n", 490),
		"more instances":  "name: a\ninstance_groups:\n- {name: a, instances: 1099511627776, azs: [a, b]}\n",
		"AZs":             "name: a\ninstance_groups:\n- {name: a, instances: 1000, azs: [" + strings.TrimSuffix(repeat("a%d,", 50_000), ",") + "]}\n",
		"ports":           "instance_groups:\n- name: a\n  jobs:\n  - name: j\n    properties:\n      quarks:\n        ports:\n" + repeat("        - {name: p%[1]d, internal: %[1]d}\n", 5_000),
		"addons":          "releases: [{name: r}]\naddons:\n" + repeat("- {name: a%d, jobs: [{name: j, release: r}]}\n", 99) + "instance_groups:\n" + repeat("- {name: g%d}\n", 490),
		"migrations":      "instance_groups:\n- name: a\n  migrated_from: [" + strings.TrimSuffix(repeat("m%d,", 8_000), ",") + "]\n",
	} {
		var found Findings
		took := cputime.Of(func() { _, found = check([]byte(text), Options{}) })
		t.Logf("%-15s %7d bytes %8v %d findings", name, len(text), took.Round(time.Millisecond), len(found))
		if took > 15*time.Second {
			t.Errorf("%s took %v", name, took)
		}
		if len(text) > tree.MaxBytes {
			t.Errorf("%s has %d bytes; it is not looked at", name, len(text))
		}
		if len(found) == 0 || len(found) > 2*(maxFindings+1) {
			t.Errorf("%s: got %d findings", name, len(found))
		}
	}
}

// real is a manifest of the size of cf-deployment's: 17 groups, 140 jobs, 130
// variables.
func real() string {
	var b strings.Builder
	b.WriteString("name: cf\nreleases:\n")
	for i := range 30 {
		fmt.Fprintf(&b, "- {name: r%d, version: '1', url: registry.example.com/org, stemcell: {os: a, version: '1'}}\n", i)
	}
	b.WriteString("instance_groups:\n")
	for g := range 17 {
		fmt.Fprintf(&b, "- name: g%d\n  azs: [z1, z2]\n  instances: 2\n  jobs:\n", g)
		for j := range 140/17 + 1 {
			fmt.Fprintf(&b, "  - name: j%d\n    release: r%d\n    properties:\n      a: {b: {c: ((v%d)), d: [1, 2, 3], e: ((t%d.certificate))}}\n      f: a long text with ((v%d)) in it\n", j, (g+j)%30, (g*7+j)%65, (g+j)%65, j)
			fmt.Fprintf(&b, "      quarks: {ports: [{name: p%d, internal: %d}], run: {healthcheck: {m: {readiness: {tcpSocket: {port: %d}}}}}}\n", j, 8000+j, 8000+j)
		}
	}
	b.WriteString("variables:\n- {name: ca, type: certificate, options: {is_ca: true, common_name: ca}}\n")
	for v := range 65 {
		fmt.Fprintf(&b, "- {name: v%d, type: password}\n- {name: t%d, type: certificate, options: {ca: ca, common_name: t}}\n", v, v)
	}
	return b.String()
}

// TestLintIsFast holds that a manifest of the size of cf-deployment's is linted
// far under a second.
func TestLintIsFast(t *testing.T) {
	text := []byte(real())
	var found Findings
	took := cputime.Of(func() { _, found = check(text, Options{Given: []string{}}) })
	if n := found.Count(Error) + found.Count(Warning); n > 0 {
		t.Errorf("got %s", format(found))
	}
	t.Logf("%d bytes in %v", len(text), took)
	if took > time.Second {
		t.Errorf("it took %v", took)
	}
}

func BenchmarkCheck(b *testing.B) {
	text := []byte(real())
	for b.Loop() {
		check(text, Options{})
	}
}

// FuzzCheck holds that nothing brings the linter down, and that the good
// manifest's findings stay in order.
func FuzzCheck(f *testing.F) {
	f.Add(real()[:3000])
	f.Add("releases: {name: a}\ninstance_groups: [{name: a, jobs: [{name: b, release: a, properties: {quarks: {run: {healthcheck: {x: {readiness: {exec: {command: [a b]}}}}}}}}]}]")
	f.Add("name: a\nvariables: [{name: x, type: certificate, options: {ca: x}}]\naddons: [{name: a, include: {jobs: [{name: x}]}, jobs: [{name: y}]}]")
	f.Fuzz(func(t *testing.T, text string) {
		m, found := check([]byte(text), Options{Strict: true})
		if m == nil {
			t.Fatal("no manifest")
		}
		for i := 1; i < len(found); i++ {
			if found[i].Level > found[i-1].Level {
				t.Errorf("%v after %v", found[i], found[i-1])
			}
		}
		with := m.WithAddons()
		if len(with.InstanceGroups) != len(m.InstanceGroups) {
			t.Errorf("got %d groups of %d", len(with.InstanceGroups), len(m.InstanceGroups))
		}
	})
}
