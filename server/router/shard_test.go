package router

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A listener serves only the endpoints of its segments; a route without any there is
// unknown (gorouter: registry.endpointInRouterShard).
func TestShards(t *testing.T) {
	s := newSite(t, Config{})
	in := func(segment string, e Endpoint) Endpoint {
		e.Segment = segment
		return e
	}
	shared, red, blue := app(t, "shared", 0, nil), in("red", app(t, "red", 1, nil)), in("blue", app(t, "blue", 2, nil))
	s.Set(Table{Routes: []Route{route("shared.test", shared), route("red.test", red), route("blue.test", blue), route("both.test", red, shared), route("*.test", shared)}})
	get := func(shard *Shard, host string, headers ...string) (int, string) {
		w, req := httptest.NewRecorder(), httptest.NewRequest("GET", "http://"+host+"/", nil)
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		s.In(shard).ServeHTTP(w, req)
		return w.Code, w.Body.String()
	}
	const unknown = 404
	for _, tt := range []struct {
		name  string
		shard *Shard
		want  map[string]string // by host; "" is an unknown route
	}{
		{"all", nil, map[string]string{"shared.test": "shared", "red.test": "red", "blue.test": "blue"}},
		{"segments", &Shard{Segments: []string{"Red"}}, map[string]string{"shared.test": "", "red.test": "red", "blue.test": "", "both.test": "red", "x.test": ""}},
		{"shared-and-segments", &Shard{Shared: true, Segments: []string{"blue"}}, map[string]string{"shared.test": "shared", "red.test": "shared", "blue.test": "blue", "both.test": "shared"}},
		{"none", &Shard{}, map[string]string{"shared.test": "", "red.test": ""}},
	} {
		for host, want := range tt.want {
			for range 3 { // whichever the turn
				status, body := get(tt.shard, host)
				if want == "" && (status != unknown || body != "404 Not Found: Requested route ('"+host+"') does not exist.\n") || want != "" && (status != http.StatusOK || body != want) {
					t.Errorf("%s: %s: got %d %q; want %q", tt.name, host, status, body, want)
				}
			}
		}
	}
	if status, _ := get(&Shard{Shared: true}, "both.test", "X-Cf-App-Instance", appGUID+":1"); status != http.StatusBadRequest {
		t.Errorf("an instance of another segment: got %d; want 400", status)
	}
	if status, body := get(&Shard{Shared: true}, "both.test", "Cookie", "JSESSIONID=x; __VCAP_ID__=red"); status != 200 || body != "shared" {
		t.Errorf("a session at an instance of another segment: got %d %q; want shared", status, body)
	}
}
