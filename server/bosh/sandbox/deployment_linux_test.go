package sandbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cupola/server/bosh"
	"cupola/server/bosh/manifest"
)

// largeImage has as many jobs and templates as a whole Cloud Foundry.
func largeImage(jobs, templates int) map[string]string {
	files := map[string]string{}
	for j := range jobs {
		dir := fmt.Sprintf("var/vcap/jobs-src/job-%d/", j)
		spec := "properties: {port: {default: 80}, list: {default: [a, b]}, tls.key: {description: a key}}\n" +
			"consumes: [{name: first, type: job-0, optional: true}]\ntemplates:\n  bpm.yml.erb: config/bpm.yml\n"
		if j == 0 {
			spec = "provides: [{name: first, type: job-0, properties: [port]}]\n" + spec
		}
		files[dir+"templates/bpm.yml.erb"] = "<%=\nrequire 'yaml'\nYAML.dump('processes' => [{ 'name' => name, 'executable' => '/bin/true', 'args' => p('list') }])\n%>"
		for t := 1; t < templates; t++ {
			spec += fmt.Sprintf("  t%d.erb: config/t%d\n", t, t)
			files[fmt.Sprintf("%stemplates/t%d.erb", dir, t)] = strings.Repeat("<% if_p('tls.key') do |key| -%>\nkey: <%= key.upcase %>\n<% end -%>\n"+
				"<% if_link('first') do |l| -%>\nfirst: <%= l.instances.map(&:address).join(',') %>:<%= l.p('port') %>\n<% end -%>\nport: <%= p('port') + 1 %> <%= spec.address %>\n", 10)
		}
		files[dir+"job.MF"] = spec
	}
	return files
}

// TestLargeDeployment reads, links and renders a deployment of 17 groups and
// 140 jobs with ten templates each.
func TestLargeDeployment(t *testing.T) {
	const groups, jobs, templates = 17, 140, 10
	s := newSandbox(t, Config{})
	ruby := hostRuby(t, s)
	images := s.NewImages(nil)
	defer func() {
		if err := images.Close(); err != nil {
			t.Error(err)
		}
	}()
	var text strings.Builder
	fmt.Fprintf(&text, "name: large\nreleases: [{name: all, version: 1, url: 'file://%s'}]\ninstance_groups:\n", writeLayout(t, largeImage(jobs, templates)))
	for g := range groups {
		fmt.Fprintf(&text, "- name: group-%d\n  instances: 1\n  jobs:\n", g)
		for j := g; j < jobs; j += groups {
			fmt.Fprintf(&text, "  - {name: job-%d, release: all, properties: {tls: {key: secret}}}\n", j)
		}
	}
	m, found := manifest.Parse([]byte(text.String()))
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	var d *bosh.Deployment
	for _, image := range []string{"unpacked first", "there already"} {
		start := time.Now()
		var err error
		if d, err = (bosh.Resolver{Job: images.Job, Ruby: ruby, Pinned: images.Pinned}).Resolve(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		t.Logf("resolved %d templates in %v, their image %s", jobs*templates, time.Since(start), image)
	}
	last := d.Groups[groups-1].Jobs[0]
	if len(last.Processes) != 1 || last.Processes[0].Container != "job-16-group-16" || !strings.Contains(last.Pinned, "sha256:") && !strings.HasPrefix(last.Pinned, "oci:") {
		t.Errorf("got %+v", last)
	}
	if got, want := string(d.Groups[1].Instances[0].Jobs[0].Files[1].Content), "key: SECRET\nfirst: large-group-0-0:80\nport: 81 large-group-1-0\n"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
}
