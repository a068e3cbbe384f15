package api

import "testing"

func TestSecurityGroups(t *testing.T) {
	w := newWorld(t)
	body := `{"name": "sg", "rules": [{"protocol": "tcp", "destination": "10.0.0.0/8", "ports": "80"}], "relationships": {"running_spaces": {"data": [{"guid": "space-1"}]}}}`
	bind := `{"data": [{"guid": "space-1"}]}`
	w.run(t, []step{
		{method: "GET", path: "/v3/security_groups?globally_enabled_running=true", status: 200,
			want: `{"resources": [{"name": "public_networks", "globally_enabled": {"running": true, "staging": true}}, {"name": "dns", "rules": [{"protocol": "tcp", "ports": "53"}, {"protocol": "udp"}]}]}`},
		{method: "POST", path: "/v3/security_groups", body: body, status: 201, save: "sg"},
		{method: "POST", path: "/v3/security_groups", body: body, status: 422, want: detail(10008, "Security group with name 'sg' already exists.")},
		{method: "POST", path: "/v3/security_groups", body: `{"name": "x", "relationships": {"running_spaces": {"data": [{"guid": "none"}]}}}`, status: 422,
			want: detail(10008, `Spaces with guids ["none"] do not exist.`)},
		{as: "space_developer", method: "GET", path: "/v3/security_groups/{sg}", status: 200, want: `{"relationships": {"running_spaces": {"data": [{"guid": "space-1"}]}, "staging_spaces": {"data": []}}}`},
		{as: "nobody", method: "GET", path: "/v3/security_groups/{sg}", status: 404, want: detail(10010, "Security group not found")},
		{as: "nobody", method: "GET", path: "/v3/security_groups", status: 200, want: `{"pagination": {"total_results": 2}}`},
		{as: "space_manager", method: "POST", path: "/v3/security_groups/{sg}/relationships/staging_spaces", body: bind, status: 200,
			want: `{"data": [{"guid": "space-1"}], "links": {"self": {"href": "{url}/v3/security_groups/{sg}/relationships/staging_spaces"}}}`},
		{as: "space_developer", method: "POST", path: "/v3/security_groups/{sg}/relationships/staging_spaces", body: bind, status: 403},
		{as: "space_manager", method: "POST", path: "/v3/security_groups/{sg}/relationships/running_spaces", body: `{"data": [{"guid": "none"}]}`, status: 422,
			want: detail(10008, `Spaces with guids ["none"] do not exist, or you do not have access to them.`)},
		{as: "space_developer", method: "GET", path: "/v3/spaces/space-1/running_security_groups", status: 200, want: `{"pagination": {"total_results": 3}}`},
		{as: "space_developer", method: "GET", path: "/v3/spaces/space-1/staging_security_groups?names=sg", status: 200, want: `{"resources": [{"name": "sg"}]}`},
		{method: "DELETE", path: "/v3/security_groups/{sg}/relationships/running_spaces/space-1", status: 204},
		{method: "DELETE", path: "/v3/security_groups/{sg}/relationships/running_spaces/space-1", status: 422,
			want: detail(10008, "Unable to unbind security group from space with guid 'space-1'. Ensure the space is bound to this security group.")},
		{method: "PATCH", path: "/v3/security_groups/{sg}", body: `{"globally_enabled": {"running": true}}`, status: 200, want: `{"globally_enabled": {"running": true, "staging": false}, "rules": [{"ports": "80"}]}`},
		{as: "org_manager", method: "PATCH", path: "/v3/security_groups/{sg}", body: `{"name": "y"}`, status: 403},
		{method: "DELETE", path: "/v3/spaces/space-1", status: 202},
		{method: "GET", path: "/v3/security_groups/{sg}", status: 200, want: `{"relationships": {"staging_spaces": {"data": []}}}`},
		{method: "DELETE", path: "/v3/security_groups/{sg}", status: 202},
		{method: "GET", path: "/v3/security_groups/{sg}", status: 404},
	})
}
