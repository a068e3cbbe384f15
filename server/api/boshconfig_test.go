package api

import "testing"

// TestConfigsOfDeployments are kept by version, and checked before they are.
func TestConfigsOfDeployments(t *testing.T) {
	w := newWorld(t)
	const path = "/v1/configs"
	body := func(kind, name, content string) string {
		return `{"type": "` + kind + `", "name": "` + name + `", "content": "` + content + `"}`
	}
	w.run(t, []step{
		{as: "admin", method: "POST", path: path, body: body("cloud", "default", "azs: [{name: z1}]"), status: 201, want: `{"id": "1", "type": "cloud", "name": "default", "findings": null}`},
		{as: "admin", method: "POST", path: path, body: body("cloud", "default", "azs: [{name: z1}]"), status: 201, want: `{"id": "1"}`},
		{as: "admin", method: "POST", path: path, body: body("cloud", "default", "azs: [{name: z2}]"), status: 201, want: `{"id": "2"}`},
		{as: "admin", method: "POST", path: path, body: body("cloud", "more", "azs: [{name: z2}]"), status: 422, want: detail(10008, "cloud-config/azs/name=z2: Duplicate az name 'z2'")},
		{as: "admin", method: "POST", path: path, body: body("cloud", "default", "[]"), status: 422, want: detail(10008, "cloud config 'default': YAML hash expected")},
		{as: "admin", method: "POST", path: path, body: body("cloud", "", "{}"), status: 422, want: detail(10008, "Name is required")},
		{as: "admin", method: "POST", path: path, body: body("runtime", "dns", "tags: {a: b}"), status: 201, want: `{"id": "3"}`},
		{as: "admin", method: "GET", path: path + "?latest=true", status: 200, want: `[{"id": "2", "content": "azs: [{name: z2}]"}, {"id": "3"}]`},
		{as: "admin", method: "GET", path: path + "?type=cloud", status: 200, want: `[{"id": "2"}, {"id": "1"}]`},
		{as: "admin", method: "GET", path: path + "?latest=x", status: 400},
		{as: "admin", method: "GET", path: path + "/1", status: 200, want: `{"content": "azs: [{name: z1}]"}`},
		{as: "admin", method: "DELETE", path: path + "/2", status: 204},
		{as: "admin", method: "GET", path: path + "/2", status: 404, want: detail(10010, "Config with ID '2' not found.")},
		{as: "admin", method: "GET", path: path + "?latest=true&type=cloud", status: 200, want: `[{"id": "1"}]`},
		{as: "admin", method: "DELETE", path: path + "?type=cloud&name=default", status: 204},
		{as: "admin", method: "DELETE", path: path + "?type=cloud&name=default", status: 404},
		{as: "admin", method: "DELETE", path: path + "?type=cloud", status: 400},
		{as: "admin", method: "POST", path: path, body: body("cloud", "default", "azs: [{name: z3}]"), status: 201, want: `{"id": "4"}`},
		{as: "admin", method: "POST", path: "/v1/deployments", body: `{"manifest": "{name: d, instance_groups: [{name: g, azs: [z1]}]}"}`, status: 422,
			want: detail(10008, "the manifest cannot be deployed:\n/instance_groups/name=g/azs: Instance group 'g' references unknown availability zone 'z1'")},
		{as: "admin", method: "POST", path: "/v1/deployments", body: `{"manifest": "{name: d, instance_groups: [{name: g, azs: [z3]}]}"}`, status: 202},
	})
}
