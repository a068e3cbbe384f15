package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/bosh/interpolate"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/tree"
)

const cloudText = `
azs: [{name: z1}, {name: z2}]
vm_types:
- {name: small, cloud_properties: {cpu: 2, ram: 1024, instance_type: m1.small}}
vm_extensions:
- {name: roomy, cloud_properties: {ephemeral_disk: {size: 8192}, ram: 2048}}
disk_types:
- {name: 5GB, disk_size: 5120, cloud_properties: {storage_class: fast}}
networks: [{name: default, type: manual, subnets: []}]
compilation: {workers: 5, az: z1, network: default, vm_type: small}
`

const manifestText = `
name: dep
releases: [{name: nats, version: "1", url: docker.io/x, stemcell: {os: jammy, version: "1"}}]
instance_groups:
- name: nats
  azs: [z1]
  instances: 1
  vm_type: small
  vm_extensions: [roomy]
  persistent_disk_type: 5GB
  networks: [{name: default}]
  jobs: [{name: nats, release: nats}]
tags: {team: a}
`

const runtimeText = `
releases: [{name: os-conf, version: "22", url: docker.io/x, stemcell: {os: jammy, version: "1"}}, {name: other, version: "1", url: docker.io/x}]
addons:
- name: users
  jobs: [{name: user_add, release: os-conf, properties: {password: ((pw))}}]
- name: elsewhere
  include: {deployments: [another]}
  jobs: [{name: x, release: other}]
variables: [{name: pw, type: password}]
tags: {team: b, site: here}
`

func set(texts ...string) (s Set) {
	for i, text := range texts {
		kind := Cloud
		if strings.Contains(text, "releases") || strings.Contains(text, "addons") || strings.HasPrefix(text, "tags") || strings.HasPrefix(text, "variables") {
			kind = Runtime
		}
		s = append(s, Config{Type: kind, Name: string(rune('a' + i)), Content: text})
	}
	return s
}

func lint(t *testing.T, text string, s Set) (*manifest.Manifest, []string, error) {
	t.Helper()
	root, err := tree.LoadBOSH([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m, found, err := s.Lint(root, nil, manifest.Options{})
	var lines []string
	for _, f := range found {
		if f.Level > manifest.Info {
			lines = append(lines, f.Level.String()+" "+f.String())
		}
	}
	return m, lines, err
}

// TestCloudConfigsGiveNamesTheirMeaning holds that types bound containers and size
// disks, and that nothing is warned of that has an effect.
func TestCloudConfigsGiveNamesTheirMeaning(t *testing.T) {
	m, lines, err := lint(t, manifestText, set(cloudText))
	if err != nil || lines != nil {
		t.Errorf("got %v, %v", lines, err)
	}
	g := m.Group("nats")
	if diff := cmp.Diff(&manifest.VMResources{CPU: 2, RAMMB: 2048, EphemeralDiskMB: 8192}, g.VMResources); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if g.PersistentDiskMB != 5120 || g.PersistentDiskType != "fast" {
		t.Errorf("got a disk of %d MB, %q", g.PersistentDiskMB, g.PersistentDiskType)
	}
	if _, lines, _ = lint(t, manifestText, nil); len(lines) != 4 {
		t.Errorf("without a cloud-config, got %q; want a warning for each name", lines)
	}
}

// TestNamesThatNoCloudConfigHas are errors in the director's words.
func TestNamesThatNoCloudConfigHas(t *testing.T) {
	for _, c := range []struct{ old, now, want string }{
		{"vm_type: small", "vm_type: smal", `Instance group 'nats' references an unknown vm type 'smal' (did you mean "small"?)`},
		{"[roomy]", "[x]", `The vm_extension 'x' has not been configured in cloud-config`},
		{"persistent_disk_type: 5GB", "persistent_disk_type: 50TB", `Instance group 'nats' references an unknown disk type '50TB'`},
		{"persistent_disk_type: 5GB", "persistent_disk_type: 5GB\n  persistent_disk: 7", `Instance group 'nats' specifies more than one of the following keys: 'persistent_disk' and 'persistent_disk_type'. Choose one.`},
		{"vm_type: small", "vm_type: small\n  vm_resources: {cpu: 1}", `Instance group 'nats' can only specify one of 'vm_type' or 'vm_resources' keys`},
		{"azs: [z1]", "azs: [z9]", `Instance group 'nats' references unknown availability zone 'z9'`},
		{"{name: default}", "{name: public}", `Instance group 'nats' references an unknown network 'public'`},
		{"name: dep", "azs: []\nname: dep", `Deployment manifest contains 'azs' section, but this can only be set in a cloud-config`},
	} {
		_, lines, err := lint(t, strings.Replace(manifestText, c.old, c.now, 1), set(cloudText))
		if all := strings.Join(lines, "\n"); err != nil || !strings.Contains(all, c.want) {
			t.Errorf("%s: got %s, %v; want %s", c.now, all, err, c.want)
		}
	}
}

// TestRuntimeConfigsAddTo holds that addons that apply come with their releases, and
// that the manifest's own tags win.
func TestRuntimeConfigsAddTo(t *testing.T) {
	m, lines, err := lint(t, manifestText, set(cloudText, runtimeText))
	if err != nil || lines != nil {
		t.Fatalf("got %v, %v", lines, err)
	}
	if len(m.Addons) != 1 || m.Addons[0].Name != "users" || m.Release("os-conf") == nil || m.Release("other") != nil || len(m.Variables) != 1 {
		t.Errorf("got addons %v, releases %v, variables %v", m.Addons, m.Releases, m.Variables)
	}
	if diff := cmp.Diff(map[string]string{"team": "a", "site": "here"}, m.Tags); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if jobs := m.WithAddons().Group("nats").Jobs; len(jobs) != 2 || jobs[1].Name != "user_add" {
		t.Errorf("got %v", jobs)
	}
}

// TestConfigsThatDoNotGoTogether fail in the director's words.
func TestConfigsThatDoNotGoTogether(t *testing.T) {
	for want, s := range map[string]Set{
		"Cloud config 'compilation' key cannot be defined in multiple cloud configs.":  set("compilation: {workers: 1}", "compilation: {workers: 2}"),
		"Runtime config 'tags' key cannot be defined in multiple runtime configs.":     set("tags: {a: b}", "tags: {c: d}"),
		"cloud-config/azs/name=z1: Duplicate az name 'z1'":                             set("azs: [{name: z1}]", "azs: [{name: z1}]"),
		"Duplicate vm type name 'a'":                                                   set("vm_types: [{name: a}, {name: a}]"),
		"Duplicate disk type name 'a'":                                                 set("disk_types: [{name: a, disk_size: 1}, {name: a, disk_size: 1}]"),
		"Invalid network type 'odd'":                                                   set("networks: [{name: a, type: odd}]"),
		"Compilation config references an unknown network 'x'":                         set("compilation: {network: x}"),
		"cloud config 'a': YAML hash expected":                                         set("[]"),
		"cloud config 'a': Config must be valid YAML":                                  set("a: ["),
		"cloud config 'a': /azs: expected a list, got a map":                           set("azs: {name: z1}"),
		"Manifest specifies job 'j' which is defined in 'r', but 'r' is not listed in": set("addons: [{name: a, jobs: [{name: j, release: r}]}]"),
		"Runtime manifest specifies release 'nats' with version as '2'. This conflicts with version '1' specified in the deployment manifest.": set(
			"releases: [{name: nats, version: '2'}]\naddons: [{name: a, jobs: [{name: j, release: nats}]}]"),
		"Duplicate variable name 'v'": set("variables: [{name: v, type: password}]", "variables: [{name: v, type: rsa}]"),
	} {
		if _, _, err := lint(t, manifestText, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v; want %s", s, err, want)
		}
	}
	for want, c := range map[string]Config{
		`unknown key "addon" (did you mean "addons"?) in a runtime config`:                                              {Type: Runtime, Name: "a", Content: "addon: []"},
		"Runtime manifest contains the release 'r' with version as 'latest'. Please specify the actual version string.": {Type: Runtime, Name: "a", Content: "releases: [{name: r, version: latest}]"},
		"invalid name": {Type: Runtime, Name: "a/b", Content: "{}"},
		"invalid type": {Name: "a", Content: "{}"},
	} {
		if _, err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v; want %s", c, err, want)
		}
	}
}

// TestValuesInConfigs holds that values replace variables, also those for whole lists.
func TestValuesInConfigs(t *testing.T) {
	s := set("azs: ((zones))", "vm_types: [{name: ((type))}]")
	c, err := s.Cloud(interpolate.Values{"zones": []any{map[string]any{"name": "z1"}}, "type": "small"})
	if err != nil {
		t.Fatal(err)
	}
	m, _ := manifest.Parse([]byte("name: d\ninstance_groups: [{name: g, azs: [z1, z2], vm_type: small}]"))
	found := m.Use(c)
	if len(found) != 1 || !strings.Contains(found[0].What, "'z2'") {
		t.Errorf("got %v", found)
	}
}

// TestShownKeepsAll holds that what is compared has the cloud-config and the addons.
func TestShownKeepsAll(t *testing.T) {
	root, err := tree.LoadBOSH([]byte(manifestText))
	if err != nil {
		t.Fatal(err)
	}
	out, err := set(cloudText, runtimeText).Shown(root)
	if err != nil {
		t.Fatal(err)
	}
	text, err := tree.Write(out)
	for _, want := range []string{"disk_size: 5120", "user_add", "name: dep"} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%q is missing in %s, %v", want, text, err)
		}
	}
	if tree.Get(root, "addons") != nil {
		t.Error("the manifest itself was changed")
	}
}

// FuzzConfigs holds that no config makes a manifest panic, and that a set that Check
// takes can be used.
func FuzzConfigs(f *testing.F) {
	f.Add(cloudText, runtimeText, manifestText)
	f.Add("azs: [{name: ((a))}]", "addons: [{jobs: [~]}]\nreleases: [1]\ntags: []", "name: x\nreleases: ~\ntags: ~\naddons: 5")
	f.Add("vm_types: [{cloud_properties: {cpu: -1, ephemeral_disk: []}}]", "variables: [[]]", "instance_groups: [{azs: [1]}]")
	f.Fuzz(func(t *testing.T, cloud, runtime, text string) {
		s := Set{{Type: Cloud, Name: "a", Content: cloud}, {Type: Runtime, Name: "a", Content: runtime}}
		checked := s.Check()
		root, err := tree.LoadBOSH([]byte(text))
		if err != nil {
			return
		}
		before, _ := tree.Write(root)
		_, _, err = s.Lint(root, nil, manifest.Options{})
		if checked != nil && err == nil && root.Kind != 0 {
			t.Errorf("Check says %v, and Lint takes it", checked)
		}
		_, _ = s.Shown(root)
		if after, _ := tree.Write(root); string(before) != string(after) {
			t.Errorf("the manifest was changed:\n%s\nto:\n%s", before, after)
		}
	})
}
