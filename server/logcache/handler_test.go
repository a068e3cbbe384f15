package logcache

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func refuseSecret(_ *http.Request, sourceIDs ...string) (map[string]bool, error) {
	may := map[string]bool{}
	for _, id := range sourceIDs {
		if id != "secret" {
			may[id] = true
		}
	}
	return may, nil
}

// get returns status and body.
func get(c *Cache, path string) string {
	w := httptest.NewRecorder()
	c.Handler(refuseSecret).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return fmt.Sprint(w.Code, " ", strings.TrimSpace(w.Body.String()))
}

func TestHandler(t *testing.T) {
	c := New(Config{})
	e := line("a", 1795219837755019895, "hello")
	e.Tags = map[string]string{"source_type": "APP/PROC/WEB"}
	c.Append(e)
	e = line("a", 1795219837755019896, "oops")
	e.Err, e.InstanceID = true, "1"
	c.Append(e)
	c.Append(line("secret", 1, "x"))
	const (
		first  = `{"timestamp":"1795219837755019895","source_id":"a","instance_id":"0","tags":{"source_type":"APP/PROC/WEB"},"log":{"payload":"aGVsbG8=","type":"OUT"}}`
		second = `{"timestamp":"1795219837755019896","source_id":"a","instance_id":"1","log":{"payload":"b29wcw==","type":"ERR"}}`
		empty  = `200 {"envelopes":{"batch":[]}}`
	)
	tests := []struct{ path, want string }{
		{"/api/v1/info", `200 {"version":"3.1.0","vm_uptime":"0"}`},
		// What the CLI sends, from the recorded traffic.
		{"/api/v1/read/a?descending=true&limit=1&start_time=-6795364578871345152", `200 {"envelopes":{"batch":[` + second + `]}}`},
		{"/api/v1/read/a?envelope_types=LOG&start_time=1795219837755019895", `200 {"envelopes":{"batch":[` + first + "," + second + `]}}`},
		{"/api/v1/read/a?envelope_types=LOG&start_time=1795219837755019896", `200 {"envelopes":{"batch":[` + second + `]}}`},
		{"/api/v1/read/a?envelope_types=LOG&start_time=1795219837755019897", empty},
		{"/api/v1/read/a?limit=1", `200 {"envelopes":{"batch":[` + first + `]}}`},
		{"/api/v1/read/a?end_time=1795219837755019896", `200 {"envelopes":{"batch":[` + first + `]}}`},
		{"/api/v1/read/a?envelope_types=GAUGE&envelope_types=TIMER", empty},
		{"/api/v1/read/a?name_filter=cpu", empty},
		{"/api/v1/read/none", empty},
		{"/api/v1/read/secret", "404 "},
		{"/api/v1/read/a?limit=1001", `400 {"code":3,"message":"limit (1001) must be 1000 or less","details":[]}`},
		{"/api/v1/read/a?limit=-1", `400 {"code":3,"message":"limit (-1) must be greater than zero","details":[]}`},
		{"/api/v1/read/a?limit=x", `400 {"code":3,"message":"parsing field \"limit\": \"x\" is not an integer","details":[]}`},
		{"/api/v1/read/a?start_time=yesterday", `400 {"code":3,"message":"parsing field \"start_time\": \"yesterday\" is not a 64-bit integer","details":[]}`},
		{"/api/v1/read/a?start_time=3&end_time=2", `400 {"code":3,"message":"StartTime (3) must be before EndTime (2)","details":[]}`},
		{"/api/v1/read/a?envelope_types=LOGS", `400 {"code":3,"message":"parsing list \"envelope_types\": \"LOGS\" is not valid","details":[]}`},
		{"/api/v1/read/a?descending=maybe", `400 {"code":3,"message":"parsing field \"descending\": \"maybe\" is not a boolean","details":[]}`},
		{"/api/v1/read/a?name_filter=(", `400 {"code":3,"message":"name filter must be a valid regular expression: error parsing regexp: missing closing ): ` + "`(`" + `","details":[]}`},
		{"/api/v1/meta", `200 {"meta":{"a":{"count":"2","expired":"0","oldest_timestamp":"1795219837755019895","newest_timestamp":"1795219837755019896"}}}`},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, get(c, tt.path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.path, diff)
		}
	}
}

func TestHandlerDefaultLimit(t *testing.T) {
	c := New(Config{})
	for at := range int64(1200) {
		c.Append(line("a", at, "x"))
	}
	for query, want := range map[string]int{"": 100, "?limit=0": 100, "?limit=1000": 1000} {
		if got := strings.Count(get(c, "/api/v1/read/a"+query), "timestamp"); got != want {
			t.Errorf("%q: got %d envelopes; want %d", query, got, want)
		}
	}
}

func FuzzParseRead(f *testing.F) {
	f.Add("descending=true&limit=1&start_time=-6795364578871345152&envelope_types=LOG&name_filter=.*")
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		q, err := parseRead("a", values)
		if err == nil && (q.Limit < 1 || q.Limit > maxLimit) {
			t.Fatalf("got limit %d", q.Limit)
		}
	})
}
