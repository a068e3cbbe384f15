package bosh

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

const cloudConfig = `azs: [{name: z1}]
vm_types: [{name: small, cloud_properties: {cpu: 1, ram: 256}}]
disk_types: [{name: tiny, disk_size: %d}]
networks: [{name: default}]
`

const runtimeConfig = `releases: [{name: notes, version: "1"}]
addons:
- name: note
  include: {deployments: [demo]}
  jobs: [{name: note, release: notes, properties: {text: ((note)), quarks: {bpm: {processes: []}}}}]
variables: [{name: note, type: password, options: {length: 7}}]
tags: {site: here}
`

// TestConfigs deploys by a cloud-config's names and with a runtime-config's addon, and
// changes both.
func TestConfigs(t *testing.T) {
	t.Parallel()
	d := startReleases(t)
	d.must(d.Run("deployment", "upload-release", d.dir))
	d.uploadNotes()
	small := []e2e.Doc{replace("/instance_groups/0/vm_type?", "small"), replace("/instance_groups/0/persistent_disk_type?", "tiny"), replace("/instance_groups/0/networks?", []e2e.Doc{{"name": "default"}})}
	if out := d.must(d.deployWith(small[0])); !strings.Contains(out, "vm_type: not used without a cloud-config") {
		t.Errorf("got %s\nwant a warning", out)
	}
	d.update("update-cloud-config", fmt.Sprintf(cloudConfig, 24))
	out, err := d.deployWith(replace("/instance_groups/0/vm_type?", "smal"))
	if err == nil || !strings.Contains(out, `Instance group 'web' references an unknown vm type 'smal' (did you mean "small"?)`) || strings.Contains(out, "Task ") {
		t.Errorf("got %v\n%s\nwant the type refused", err, out)
	}
	d.must(d.deployWith(small...))
	d.wantDisk("24 MB")
	d.wantFresh("latest", "none")

	if out, err := d.tryUpdate("update-cloud-config", "azs: [{name: z1}]\ncompilation: {az: z3}\n"); err == nil || !strings.Contains(out, "Compilation config references an unknown az 'z3'") {
		t.Errorf("got %v\n%s\nwant it refused", err, out)
	}
	if out := d.update("update-cloud-config", fmt.Sprintf(cloudConfig, 48)); !strings.Contains(out, "+ disk_types: [{name: tiny, disk_size: 48}]") {
		t.Errorf("got %s\nwant what changes", out)
	}
	d.wantFresh("outdated", "none")
	d.update("update-runtime-config", runtimeConfig)
	d.Kill() // what was acknowledged is there
	d.Start()
	out, err = d.withOps("diff", small...)
	if err == nil || !strings.Contains(out, "disk_size: 48") || !strings.Contains(out, "+ addons:") {
		t.Errorf("got %v\n%s\nwant what the configs change", err, out)
	}
	d.must(d.deployWith(small...))
	d.wantDisk("48 MB")
	d.wantFresh("latest", "latest")
	e2e.Eventually(t, time.Minute, func() string {
		if out := d.must(d.Run("deployment", "logs", "demo")); !strings.Contains(out, "a note of 7 characters") {
			return "the addon's script has not run:\n" + out
		}
		return ""
	})
	d.must(d.Run("deployment", "delete-config", "--type", "runtime"))
	d.wantFresh("latest", "outdated")
	if out := d.must(d.Run("deployment", "configs", "--all")); strings.Count(out, "cloud") != 2 || strings.Contains(out, "runtime") {
		t.Errorf("got %s", out)
	}
	d.answers(1, "hello")
}

// uploadNotes uploads a release with a job that only has a script.
func (d *releaseDaemon) uploadNotes() {
	d.T.Helper()
	dir := d.T.TempDir()
	for name, text := range map[string]string{
		"config/final.yml":                  "name: notes\n",
		"jobs/note/monit":                   "",
		"jobs/note/spec":                    "name: note\ntemplates: {pre-start.erb: bin/pre-start}\nproperties: {text: {}}\n",
		"jobs/note/templates/pre-start.erb": "#!/bin/bash\necho a note of <%= p('text').size %> characters\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			d.T.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			d.T.Fatal(err)
		}
	}
	d.must(d.Run("deployment", "upload-release", dir, "--version", "1"))
}

func (d *releaseDaemon) update(command, text string) string {
	d.T.Helper()
	return d.must(d.tryUpdate(command, text))
}

func (d *releaseDaemon) tryUpdate(command, text string) (string, error) {
	d.T.Helper()
	file := filepath.Join(d.T.TempDir(), "config.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		d.T.Fatal(err)
	}
	return d.Run("deployment", command, file)
}

func (d *releaseDaemon) wantDisk(size string) {
	d.T.Helper()
	if out := d.must(d.Run("deployment", "disks")); !strings.Contains(out, size) {
		d.T.Errorf("got %s; want a disk of %s", out, size)
	}
}

// wantFresh holds what the list says of the deployment's configs.
func (d *releaseDaemon) wantFresh(cloud, runtime string) {
	d.T.Helper()
	var all []struct {
		Cloud   string `json:"cloud_config"`
		Runtime string `json:"runtime_config"`
	}
	d.API("GET", "/v1/deployments", nil, &all)
	if len(all) != 1 || all[0].Cloud != cloud || all[0].Runtime != runtime {
		d.T.Errorf("got %+v; want %s, %s", all, cloud, runtime)
	}
}
