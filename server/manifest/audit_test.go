package manifest

import (
	"strings"
	"testing"
)

// TestAudited compares with what Ruby's to_yaml writes of
// {"applications" => [message.audit_hash]} (CC: SpaceManifestsController).
func TestAudited(t *testing.T) {
	m, err := Parse([]byte(`# my app
version: 1
applications:
- name: "web"       # quoted without need
  memory: 64M
  instances: 2
  env: {TOKEN: s3cret}
  stack: "5"
  buildpacks: [https://me:pw@example.com/x.zip, go_buildpack]
  services:
    - db
    - {name: queue, parameters: {password: p}}
  routes: []
  command: null
  cnb-credentials: {a: {token: x}}
- name: other
  stack:
- name: written-otherwise
  Env: {TOKEN: s3cret}
  cnb_credentials: {a: {token: x}}
`))
	if err != nil {
		t.Fatal(err)
	}
	redact := func(s string) string { return strings.Replace(s, "me:pw@", "***:***@", 1) }
	for i, want := range []string{`---
applications:
- name: web
  memory: 64M
  instances: 2
  env: "[HIDDEN]"
  stack: '5'
  buildpacks:
  - https://***:***@example.com/x.zip
  - go_buildpack
  services:
  - db
  - name: queue
    parameters: "[HIDDEN]"
  routes: []
  command:
  cnb-credentials: "[HIDDEN]"
`, "---\napplications:\n- name: other\n  stack:\n",
		"---\napplications:\n- name: written-otherwise\n  Env: \"[HIDDEN]\"\n  cnb_credentials: \"[HIDDEN]\"\n"} {
		got, err := m.Apps[i].Audited("[HIDDEN]", redact)
		if err != nil || got != want {
			t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
		}
	}
}
