package api

import (
	"testing"
)

// TestWhatListsTake asks lists for what only some of them take.
func TestWhatListsTake(t *testing.T) {
	w := newWorld(t)
	w.write(seedAccess)
	const instances = `"process_instances": [{"index": 0, "state": "DOWN", "since": null}]`
	w.run(t, []step{
		{method: "GET", path: "/v3/routes?service_instance_guids=ups-1,none", status: 200, want: `{"pagination": {"total_results": 1}, "resources": [{"guid": "route-1"}]}`},
		{method: "GET", path: "/v3/routes?service_instance_guids=db-1", status: 200, want: `{"resources": []}`},
		{method: "GET", path: "/v3/buildpacks?order_by=-lifecycle", status: 200},
		{method: "GET", path: "/v3/buildpacks?order_by=stack", status: 400,
			want: detail(10005, "The query parameter is invalid: Order by can only be: 'created_at', 'updated_at', 'position', 'lifecycle'")},
		{method: "GET", path: "/v3/apps/app-1/sidecars?order_by=-created_at", status: 200, want: `{"resources": [{"guid": "sidecar-1"}]}`},
		{method: "GET", path: "/v3/routes/route-1/destinations?guids=dest-1&app_guids=app-1", status: 200, want: `{"destinations": [{"guid": "dest-1"}]}`},
		{method: "GET", path: "/v3/routes/route-1/destinations?app_guids=app-2", status: 200, want: `{"destinations": []}`},
		{method: "GET", path: "/v3/processes?guids=app-1&embed=process_instances", status: 200, want: `{"resources": [{` + instances + `}]}`},
		{method: "GET", path: "/v3/apps/app-1/processes?embed=process_instances", status: 200, want: `{"resources": [{` + instances + `}]}`},
		{method: "GET", path: "/v3/processes/app-1?embed=process_instances", status: 200, want: `{"guid": "app-1", ` + instances + `}`},
		{method: "GET", path: "/v3/apps/app-1/processes/web?embed=process_instances", status: 200, want: `{` + instances + `}`},
		{method: "GET", path: "/v3/processes/app-1?embed=stats", status: 400,
			want: detail(10005, "The query parameter is invalid: Invalid embedded resource: 'stats'. Valid embedded resources are: 'process_instances'")},
		{method: "GET", path: "/v3/apps?include=space,space", status: 400, want: detail(10005, "The query parameter is invalid: Duplicate included resource: 'space'")},
	})
}
