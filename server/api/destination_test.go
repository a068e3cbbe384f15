package api

import (
	"strings"
	"testing"
)

func TestDestinations(t *testing.T) {
	w := newWorld(t)
	w.write(seedTCP)
	const path = "/v3/routes/route-1/destinations"
	send := func(method, list string, status int, want string) step {
		return step{method: method, path: path, body: `{"destinations": ` + list + `}`, status: status, want: want}
	}
	refuse := func(method, list, text string) step { return send(method, list, 422, detail(10008, text)) }
	const app = `"app": {"guid": "app-1"}`
	w.run(t, []step{
		refuse("POST", `[]`, "Destinations must be an array containing between 1 and 100 destination objects."),
		refuse("POST", `["x"]`, "Destinations[0]: must be an object."),
		refuse("POST", `[{"port": 9000}]`, `Destinations[0]: must have an "app".`),
		refuse("POST", `[{`+app+`, "x": 1}]`, `Destinations[0]: must have only "app" and optionally "weight", "port" or "protocol".`),
		refuse("POST", `[{"app": {"guid": ""}}]`, `Destinations[0]: app must have the structure {"guid": "app_guid"}`),
		refuse("POST", `[{"app": {"guid": "app-1", "process": {"type": ""}}}]`, `Destinations[0]: process must have the structure {"type": "process_type"}`),
		refuse("POST", `[{`+app+`, "port": 80}, {`+app+`, "port": 90.5, "protocol": "h3"}]`, "Destinations[0]: port must be a positive integer between 1024 and 65535 inclusive., "+
			"Destinations[1]: port must be a positive integer between 1024 and 65535 inclusive., Destinations[1]: protocol must be 'http1', 'http2' or 'tcp'."),
		refuse("POST", `[{`+app+`, "weight": 5}]`, "Destinations[0]: weighted destinations can only be used when replacing all destinations."),
		refuse("POST", `[{`+app+`, "protocol": "tcp"}]`, "Cannot use 'tcp' protocol for http routes; valid options are: [http1, http2]."),
		refuse("POST", `[{`+app+`, "protocol": "http2"}]`,
			"Cannot add destination with protocol: http2. Destination already exists for route: hello.apps.test, app: app-1, process: web, and protocol: http1."),
		refuse("POST", `[{`+app+`, "port": 9000}, {`+app+`, "port": 9000}]`, "Destinations cannot contain duplicate entries"),
		refuse("POST", `[{"app": {"guid": "none"}}]`, `App(s) with guid(s) "none" do not exist.`),
		send("POST", `[{`+app+`}, {`+app+`, "port": 9000, "protocol": "http2"}]`, 200,
			`{"destinations": [{"guid": "dest-1", "port": 8080, "protocol": "http1", "weight": null}, {"port": 9000, "protocol": "http2"}]}`),

		refuse("PATCH", `[{`+app+`, "weight": 0}]`, "Destinations[0]: weight must be a positive integer between 1 and 100."),
		refuse("PATCH", `[{`+app+`, "weight": 50}, {`+app+`, "port": 9000}]`, "Destinations cannot contain both weighted and unweighted destinations."),
		refuse("PATCH", `[{`+app+`, "weight": 50}]`, "Destinations must have weights that sum to 100."),
		send("PATCH", `[{`+app+`}]`, 200, `{"destinations": [{"guid": "dest-1"}]}`),
		{method: "PATCH", path: path + "/dest-1", body: `{"protocol": "tcp"}`, status: 422,
			want: detail(10008, "Destination protocol must be 'http1' or 'http2' if the parent route's protocol is 'http'")},
		{method: "PATCH", path: path + "/none", body: `{"protocol": "http2"}`, status: 422,
			want: detail(10008, "Unable to unmap route from destination. Ensure the route has a destination with this guid.")},
		{method: "PATCH", path: path + "/dest-1", body: `{"protocol": "http2"}`, status: 200, want: `{"guid": "dest-1", "protocol": "http2"}`},
		send("PATCH", `[{`+app+`, "weight": 40}, {`+app+`, "port": 9000, "weight": 60}]`, 200, `{"destinations": [{"weight": 40}, {"weight": 60}]}`),
		refuse("POST", `[{`+app+`, "port": 9001}]`, "Destinations cannot be inserted when there are weighted destinations already configured."),
		send("PATCH", `[]`, 200, `{"destinations": []}`),
		{method: "GET", path: "/v3/audit_events?types=audit.app.map-route,audit.app.unmap-route", status: 200, want: `{"pagination": {"total_results": 7}}`},
	})
	many := strings.TrimSuffix(strings.Repeat(`{`+app+`, "port": 9000},`, 101), ",")
	w.run(t, []step{refuse("PATCH", "["+many+"]", "Destinations must be an array containing between 0 and 100 destination objects.")})
}
