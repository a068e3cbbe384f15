package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/bosh/ops"
	"cupola/server/bosh/tree"
)

// changed is what Check says of the good manifest with operations applied,
// errors and warnings only.
func changed(t *testing.T, text string, o Options) []string {
	t.Helper()
	root, err := tree.Load(read(t, "testdata/good.yml"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := ops.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if root, err = ops.Apply(root, all); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	m, found := Decode(root)
	found = append(found.Graded(o), Lint(m, o)...)
	found.Sort()
	var lines []string
	for _, f := range found {
		if f.Level != Info {
			lines = append(lines, f.Level.String()+" "+f.String())
		}
	}
	return lines
}

func TestNothingIsWrongWithTheGoodManifest(t *testing.T) {
	if got := changed(t, "", Options{Strict: true, Given: []string{}}); got != nil {
		t.Errorf("got %s", strings.Join(got, "\n"))
	}
}

// TestRules checks one fault per row, with all findings of the manifest.
func TestRules(t *testing.T) {
	const api, job = "/instance_groups/name=api", "/instance_groups/name=api/jobs/name=cloud_controller_ng"
	const quarks = job + "/properties/quarks"
	set := func(path, value string) string {
		if !strings.HasSuffix(path, "/-") {
			path += "?"
		}
		return "- type: replace\n  path: " + path + "\n  value: " + value + "\n"
	}
	remove := func(path string) string { return "- {type: remove, path: " + path + "}\n" }
	for name, c := range map[string]struct {
		ops  string
		want []string
	}{
		"no name":           {remove("/name"), []string{"error /name: the deployment has no name"}},
		"bad name":          {set("/name", "../etc"), []string{`error /name: "../etc" is not a valid deployment name; use letters, digits, hyphens and underscores`}},
		"long name":         {set("/name", strings.Repeat("x", 201)), []string{"error /name: the name has 201 characters; at most 200 leave room for the names of its objects"}},
		"no groups":         {remove("/instance_groups"), []string{"warning /instance_groups: there are none: nothing runs", "warning /stemcells/alias=default: not used"}},
		"director":          {set("/director_uuid", "x"), []string{"warning /director_uuid: not used"}},
		"addresses":         {set("/features", "{use_dns_addresses: false}"), []string{"error /features/use_dns_addresses: not supported; addresses in links are always names; remove it"}},
		"converge":          {set("/features", "{converge_variables: true}"), []string{"warning /features/converge_variables: use update_mode on the variable"}},
		"properties":        {set("/properties", "{a: b}"), []string{"error /properties: not supported; properties of deployments are deprecated; move them to the jobs"}},
		"quarks_links":      {set("/properties", "{quarks_links: {}}"), nil},
		"unknown key":       {set("/realeases", "[]"), []string{`warning /: unknown key "realeases" (did you mean "releases"?)`}},
		"unknown far":       {set("/zzzzzzz", "[]"), []string{`warning /: unknown key "zzzzzzz"`}},
		"latest":            {set("/releases/name=plain/version", "latest"), []string{`error /releases/name=plain: release version "latest" is not supported; give the version of the release, or leave out url and upload the release`}},
		"no version":        {remove("/releases/name=plain/version"), []string{`error /releases/name=plain: release "plain" has no version; give version`}},
		"no url":            {remove("/releases/name=plain/url"), nil},
		"latest, uploaded":  {remove("/releases/name=plain/url") + set("/releases/name=plain/version", "latest"), nil},
		"create":            {set("/releases/name=plain/version", "create"), []string{`error /releases/name=plain: release version "create" is not supported; create and upload it with 'cupola deployment upload-release DIRECTORY', and give its version`}},
		"archive":           {set("/releases/name=plain/url", "https://bosh.io/d/x"), nil},
		"archive's digest":  {set("/releases/name=plain/url", "https://bosh.io/d/x") + set("/releases/name=plain/sha1", `"12"`), []string{`error /releases/name=plain/sha1: invalid digest "12": give a SHA-1 in hex, or sha256:HEX, or several like sha1:HEX;sha256:HEX`}},
		"hub":               {set("/releases/name=plain/url", "hub.docker.com/org"), []string{"warning /releases/name=plain/url: hub.docker.com is not a registry; use docker.io"}},
		"no image's name":   {set("/releases/name=plain/version", "1+2"), []string{`error /instance_groups/name=smoke/jobs/name=smoke: "registry.example.com:5000/org/plain:opensuse-42.3-28.g837c5b3-30.263-1+2" is not a valid image name; registries take lower case paths, and tags of up to 128 letters, digits, dots, hyphens and underscores`}},
		"twice a release":   {set("/releases/-", "{name: plain, version: '2', url: a/b}"), []string{`error /releases/name=plain: there is another release "plain"`}},
		"half credentials":  {remove("/releases/name=capi-release/credentials/password"), []string{"error /releases/name=capi-release/credentials: username and password belong together; one is missing"}},
		"half a stemcell":   {remove("/releases/name=capi-release/stemcell/os"), []string{"error /releases/name=capi-release/stemcell: the stemcell has no os"}},
		"stemcell":          {set("/instance_groups/name=smoke/stemcell", "defalt"), []string{`error /instance_groups/name=smoke/jobs/name=smoke: stemcell could not be resolved for instance group smoke; no stemcell has the alias "defalt" (did you mean "default"?)`, "warning /stemcells/alias=default: not used"}},
		"no stemcell":       {remove("/instance_groups/name=smoke/stemcell"), []string{`error /instance_groups/name=smoke/jobs/name=smoke: stemcell could not be resolved for instance group smoke; give the release "plain" a stemcell, or the group the alias of one`, "warning /stemcells/alias=default: not used"}},
		"stemcell of none":  {set(api+"/stemcell", "default"), []string{"warning " + api + "/stemcell: not used"}},
		"latest stemcell":   {set("/stemcells/alias=default/version", "latest"), []string{`error /stemcells/alias=default: stemcell version "latest" is not supported; images are named for one`}},
		"release":           {set(job+"/release", "capi"), []string{"error " + job + ": release 'capi' not found"}},
		"release near":      {set(job+"/release", "capi-relaese"), []string{"error " + job + `: release 'capi-relaese' not found (did you mean "capi-release"?)`}},
		"twice a job":       {set(api+"/jobs/-", "{name: cloud_controller_ng, release: capi-release}"), []string{"error " + job + `: there is another job "cloud_controller_ng"`}},
		"path in a job":     {set("/instance_groups/name=smoke/jobs/name=smoke/name", "../../etc"), []string{`error /instance_groups/name=smoke/jobs/name=..~1..~1etc: "../../etc" cannot be the name of a job; it takes up to 200 letters, digits, underscores, hyphens and dots, and begins with a letter or a digit`}},
		"no jobs":           {remove("/instance_groups/name=smoke/jobs"), []string{"warning /stemcells/alias=default: not used", "warning /instance_groups/name=smoke: the group has no jobs: nothing runs"}},
		"two of an errand":  {set("/instance_groups/name=smoke/instances", "2"), []string{`error /instance_groups/name=smoke/instances: errand instance group "smoke" must have exactly 1 instance, has 2`}},
		"lifecycle":         {set("/instance_groups/name=smoke/lifecycle", "erand"), []string{`error /instance_groups/name=smoke/lifecycle: unknown lifecycle "erand"; it is service, errand or auto-errand`}},
		"many instances":    {set(api+"/instances", "1001"), []string{"error " + api + "/instances: 1001 instances; a group can have at most 1000", "error " + quarks + "/run/scaling: the job bears 1 to 9 instances, the group has 1001"}},
		"many AZs":          {set(api+"/azs", "["+strings.Repeat("a, ", 51)+"]"), []string{"error " + api + "/azs: 51 AZs; a group can have at most 50"}},
		"twice an AZ":       {set(api+"/azs", "[a, a]"), []string{"error " + api + `/azs/1: there is another AZ "a"`}},
		"group properties":  {set(api+"/properties", "{a: b}"), []string{"error " + api + "/properties: not supported; properties of instance groups are deprecated; move them to the jobs"}},
		"required service":  {set(api+"/properties", "{quarks: {required_service: x}}"), nil},
		"type without disk": {remove(api + "/persistent_disk"), []string{"warning " + api + "/persistent_disk_type: there is no cloud-config with this disk type; give one, or persistent_disk, the size in MB"}},
		"vm":                {set(api+"/vm_type", "small") + set(api+"/vm_extensions", "[x]") + set(api+"/networks", "[{name: x}]"), []string{"warning " + api + "/networks: not used", "warning " + api + "/vm_extensions: not used without a cloud-config", "warning " + api + "/vm_type: not used without a cloud-config"}},
		"migrated, there":   {set(api+"/migrated_from", "[smoke]"), []string{"error " + api + `/migrated_from/0: the instance group "smoke" is there still; remove it, or do not migrate from it`}},
		"migrated, itself":  {set(api+"/migrated_from", "[{name: api}]"), []string{"error " + api + "/migrated_from/name=api: the group cannot be migrated from itself"}},
		"migrated, twice":   {set("/instance_groups/name=smoke/migrated_from", "[cloud_controller]"), []string{`error /instance_groups/name=smoke/migrated_from/0: "cloud_controller" is migrated to "api" already`}},
		"watch time":        {set("/update/canary_watch_time", "soon"), []string{"error /update/canary_watch_time: watch time string did not match regexp: soon"}},
		"watch backwards":   {set("/update/canary_watch_time", "5-1"), []string{"error /update/canary_watch_time: the watch time 5-1 begins after its end"}},
		"watch in seconds":  {set("/update/canary_watch_time", "10000000000"), []string{"error /update/canary_watch_time: the watch time 10000000000 is longer than 30 days; it is in milliseconds"}},
		"empty update":      {set("/update", `{canaries: "", canary_watch_time: "", max_in_flight: ""}`), nil},
		"percentage":        {set("/update/canaries", "101%"), []string{"error /update/canaries: 101% is more than all instances"}},
		"no percentage":     {set("/update/canaries", "some"), []string{`error /update/canaries: expected a number or a percentage, got "some"`}},
		"none in flight":    {set("/update/max_in_flight", "0"), []string{"warning /update/max_in_flight: one instance at a time is the least"}},
		"strategy":          {set("/update/vm_strategy", "delete-create"), []string{"warning /update/vm_strategy: not used"}},
		"a kind":            {set(api+"/instances", "many"), []string{"error " + api + `/instances: expected a number, got "many"`}},
		"a kind of list":    {set(api+"/azs", "z1"), []string{"error " + api + "/azs: expected a list, got text"}},
		"a kind of map":     {set(job+"/properties", "[]"), []string{"error " + job + "/properties: expected a map, got a list"}},
		"less than nothing": {set(api+"/persistent_disk", "-1"), []string{"error " + api + "/persistent_disk: -1 is out of range", "warning " + api + "/persistent_disk_type: there is no cloud-config with this disk type; give one, or persistent_disk, the size in MB"}},
		"two blocks":        {set(job+"/properties/bosh_containerization", "{}"), []string{"error " + job + "/properties/bosh_containerization: quarks and bosh_containerization are two names of one block; give one of them"}},
		"a port twice":      {set(quarks+"/ports/-", "{name: b, internal: 8080}"), []string{"error " + quarks + `/ports/name=b: the port 8080/TCP is that of the job "cloud_controller_ng" of the same group already`}},
		"a port's name":     {set(quarks+"/ports/-", "{name: health-port, internal: 1}"), []string{"error " + quarks + `/ports/name=health-port: the job "cloud_controller_ng" of the same group has another port of this name`}},
		"a port's protocol": {set(quarks+"/ports/0/protocol", "tcp"), []string{"error " + quarks + `/ports/name=health-port: the protocol is TCP or UDP, not "tcp"`}},
		"a port's number":   {set(quarks+"/ports/0/internal", "65536"), []string{"error " + quarks + "/ports/name=health-port: internal is a port from 1 to 65535, not 65536"}},
		"a port's letters":  {set(quarks+"/ports/0/name", "sixteen-letters-"), []string{"error " + quarks + `/ports/name=sixteen-letters-: "sixteen-letters-" cannot be the name of a port; it takes letters, digits, hyphens and underscores`}},
		"a long port":       {set(quarks+"/ports/0/name", "sixteen_letters_"+"x"), []string{"warning " + quarks + "/ports/name=sixteen_letters_x: the name is longer than 15 characters; in Kubernetes only the Service's port has it"}},
		"a port in two":     {set(quarks+"/ports/-", "{name: health_port, internal: 1}"), []string{"error " + quarks + `/ports/name=health_port: the job "cloud_controller_ng" of the same group has another port of this name`}},
		"scaling":           {set(quarks+"/run/scaling/max", "2"), []string{"error " + quarks + "/run/scaling: the job bears 1 to 2 instances, the group has 3"}},
		"min over max":      {set(quarks+"/run/scaling/min", "10"), []string{"error " + quarks + "/run/scaling: min is 10 and max is 9"}},
		"not available":     {set(quarks+"/run/scaling/ha", "7"), []string{"warning " + quarks + "/run/scaling: the job is highly available from 7 instances on, the group has 3"}},
		"capability":        {set(quarks+"/run/capabilities", "[CAP_NET_ADMIN]"), []string{"error " + quarks + `/run/capabilities: "CAP_NET_ADMIN" is not a capability; capabilities look like NET_BIND_SERVICE, without CAP_`}},
		"empty probe":       {set(quarks+"/run/healthcheck/main/liveness", "{periodSeconds: 1}"), []string{"error " + quarks + "/run/healthcheck/main/liveness: the probe does nothing; give one of exec, httpGet, tcpSocket and grpc"}},
		"two probes":        {set(quarks+"/run/healthcheck/main/liveness", "{grpc: {port: 1}, tcpSocket: {port: 2}}"), []string{"error " + quarks + "/run/healthcheck/main/liveness: a probe does one thing; give one of exec, httpGet, tcpSocket and grpc"}},
		"a shell's probe":   {set(quarks+"/run/healthcheck/main/liveness", "{exec: {command: [curl x]}}"), []string{"warning " + quarks + "/run/healthcheck/main/liveness: exec.command has one element with spaces; run through /bin/sh -c"}},
		"a probe's port":    {set(quarks+"/run/healthcheck/main/liveness", "{tcpSocket: {port: 0}}"), []string{"error " + quarks + `/run/healthcheck/main/liveness: the probe's port is a number from 1 to 65535 or the name of one, not "0"`}},
		"internal":          {set(quarks+"/debug", "true"), []string{"warning " + quarks + "/debug: not used: it is internal to cf-operator"}},
		"process":           {set(quarks+"/bpm", "{processes: [{name: a/b}]}"), []string{"error " + quarks + `/bpm/processes/0: "a/b" cannot be the name of a process; it takes up to 200 letters, digits, underscores, hyphens and dots, and begins with a letter or a digit`}},
		"two links":         {set(job+"/consumes", "{a: {from: b, address: c}}"), []string{"error " + job + "/consumes/a: a link has either its own instances and address, or comes from another; not both"}},
		"no link":           {set(job+"/consumes", "{a: nil, b: null, c: {}}"), nil},
		"a link of text":    {set(job+"/consumes", "{a: b}"), []string{"error " + job + "/consumes/a: expected a map or nil, got text"}},
		"variable's type":   {set("/variables/name=adminPass/type", "passwd"), []string{`error /variables/name=adminPass/type: unsupported variable type "passwd"; it is password, certificate, rsa or ssh`}},
		"twice a variable":  {set("/variables/-", "{name: adminPass, type: rsa}"), []string{`error /variables/name=adminPass: there is another variable "adminPass"`}},
		"variable's option": {set("/variables/name=adminPass/options", "{common_name: x, is_ca: true}"), []string{"warning /variables/name=adminPass/options: common_name, is_ca have no effect on type password"}},
		"a near option":     {set("/variables/name=adminPass/options", "{lenth: 3}"), []string{`warning /variables/name=adminPass/options: unknown key "lenth" (did you mean "length"?)`}},
		"option's value":    {set("/variables/name=adminPass/options/length", "-1"), []string{"error /variables/name=adminPass/options/length: expected a number from 4 to 1024"}},
		"key usage":         {set("/variables/name=tls/options/extended_key_usage", "[x]"), []string{`error /variables/name=tls/options/extended_key_usage: unknown "x"; there are client_auth, code_signing, email_protection, server_auth, timestamping`}},
		"update mode":       {set("/variables/name=ca/update_mode", "always"), []string{`error /variables/name=ca/update_mode: unknown mode "always"; it is no-overwrite, overwrite or converge`}},
		"not a CA":          {remove("/variables/name=ca/options/is_ca"), []string{`error /variables/name=tls/options/ca: "ca" is not a CA; give it is_ca`}},
		"CA of a password":  {set("/variables/name=tls/options/ca", "adminPass"), []string{`error /variables/name=tls/options/ca: "adminPass" is not a certificate`}},
		"CA of nobody":      {set("/variables/name=tls/options/ca", "root"), []string{"warning /variables/name=tls/options/ca: ((root)) is not declared; treated as implicit variable foo.var-implicit-root"}},
		"CAs in a ring":     {set("/variables/name=ca/options/ca", "tls") + set("/variables/name=tls/options/is_ca", "true"), []string{"error /variables: Detected recursion: ca is signed by tls is signed by ca"}},
		"implicit":          {set(job+"/properties/x", "((adminpass))"), []string{"warning " + job + `/properties/x: ((adminpass)) is not declared (did you mean "adminPass"?); treated as implicit variable foo.var-implicit-adminpass`}},
		"implicit, twice":   {set(job+"/properties/x", "((a.b)) ((a.c)) ((a))"), []string{"warning " + job + "/properties/x: ((a.b)) is not declared; treated as implicit variable foo.var-implicit-a"}},
		"a field":           {set(job+"/properties/x", "((tls.certficate))"), []string{"error " + job + `/properties/x: ((tls.certficate)): a certificate has no field "certficate" (did you mean "certificate"?)`}},
		"a slash's field":   {set(job+"/properties/x", "((tls/ca))"), nil},
		"two names":         {set("/instance_groups/-", "{name: smoke-0, jobs: [{name: a, release: capi-release}]}"), []string{"error /instance_groups/name=smoke-0: its Service foo-smoke-0 would have the name of one of /instance_groups/name=smoke; rename one of them"}},
		"one name":          {set("/instance_groups/-", "{name: API, jobs: [{name: a, release: capi-release}]}"), []string{"error /instance_groups/name=API: its Service foo-api would have the name of one of /instance_groups/name=api; rename one of them"}},
		"jobs of one name":  {set(api+"/jobs/-", "{name: cloud-controller-ng, release: capi-release}"), []string{"error " + api + "/jobs/name=cloud-controller-ng: its container cloud-controller-ng would have the name of one of " + job + "; rename one of them"}},
		"no letters":        {set("/instance_groups/name=smoke/jobs/0/name", "_"), []string{`error /instance_groups/name=smoke/jobs/name=_: "_" cannot be the name of a job; it takes up to 200 letters, digits, underscores, hyphens and dots, and begins with a letter or a digit`}},
		"an addon's port":   {set("/addons/-", "{name: a, jobs: [{name: b, release: capi-release, properties: {quarks: {ports: [{name: c, internal: 8080}]}}}]}"), []string{`error /addons/name=a/jobs/name=b/properties/quarks/ports/name=c: the port 8080/TCP is that of the job "cloud_controller_ng" of the same group already`}},
		"settings":          {set(api+"/env", "{bosh: {password: x, agent: {settings: {lables: {}}}}}"), []string{"warning " + api + "/env/bosh/agent/settings: unknown key \"lables\" (did you mean \"labels\"?)", "warning " + api + "/env/bosh/password: not used"}},
		"yet a variable":    {set(api+"/instances", "((ca))") + set(api+"/azs", "((ca))") + set(api+"/lifecycle", "((ca))") + set("/releases/name=plain/version", "((ca))"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, changed(t, c.ops, Options{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLenientAndStrict(t *testing.T) {
	faults := `
- {type: replace, path: "/instance_groups/name=smoke/instances?", value: 2}
- {type: replace, path: "/properties?", value: {a: b}}
- {type: replace, path: "/colour?", value: red}
- {type: replace, path: "/director_uuid?", value: ""}
- {type: replace, path: /releases/name=plain/version, value: create}
`
	for _, c := range []struct {
		o    Options
		want []string
	}{
		{Options{}, []string{"error", "error", "error", "warning"}},
		{Options{Lenient: true}, []string{"error", "warning", "warning", "warning"}},
		{Options{Strict: true}, []string{"error", "error", "error", "error", "warning"}},
	} {
		var got []string
		for _, line := range changed(t, faults, c.o) {
			level, _, _ := strings.Cut(line, " ")
			got = append(got, level)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.o, diff)
		}
	}
}

func TestWhoDeploysHasToGiveWhatIsMissing(t *testing.T) {
	refer := `- {type: replace, path: "/tags?", value: {a: ((b)), c: ((systm_domain)), d: ((d))}}`
	got := changed(t, refer, Options{Given: []string{"d", "system_domain"}})
	want := []string{
		"error /tags/a: ((b)) is not declared; give it a value",
		`error /tags/c: ((systm_domain)) is not declared (did you mean "system_domain"?); give it a value`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
