package router

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// mirror answers with the request's head as the app sees it.
func mirror(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s %s %s\nHost: %s\n", r.Method, r.RequestURI, r.Proto, r.Host)
	r.Header.Write(w)
}

// seen is one header as the app saw it, "" if it did not.
func seen(a answer, name string) string {
	for line := range strings.Lines(a.body) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && key == name {
			return value
		}
	}
	return ""
}

func TestForwardedHeaders(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "guid-7", 7, mirror))}})
	got := s.get(t, "app.test/", "X-Vcap-Request-Id", "mine", "X-Cf-Instanceid", "forged", "X-Cf-Process-Instance", appGUID+":7")
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	id := seen(got, "X-Vcap-Request-Id")
	if !uuid.MatchString(id) || got.header.Get("X-Vcap-Request-Id") != id {
		t.Errorf("got request id %q for the app, %q for the client; want one new UUID", id, got.header.Get("X-Vcap-Request-Id"))
	}
	if start := seen(got, "X-Request-Start"); !regexp.MustCompile(`^\d{13}$`).MatchString(start) {
		t.Errorf("got X-Request-Start %q; want milliseconds", start)
	}
	want := map[string]string{
		"Host": "app.test", "X-Cf-Applicationid": appGUID, "X-Cf-Instanceid": "guid-7", "X-Cf-Instanceindex": "7",
		"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": "app.test", "X-Cf-Process-Instance": "",
	}
	for name, value := range want {
		if seen(got, name) != value {
			t.Errorf("got %s %q; want %q", name, seen(got, name), value)
		}
	}
}

func TestForwardedTrust(t *testing.T) {
	claims := []string{"X-Forwarded-For", "1.2.3.4", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "front.test", "Forwarded", "for=1.2.3.4", "X-Request-Start", "5"}
	for distrust, want := range map[bool][]string{
		false: {"1.2.3.4, 127.0.0.1", "https", "front.test", "for=1.2.3.4", "5"},
		true:  {"127.0.0.1", "http", "app.test", "", "5"},
	} {
		s := newSite(t, Config{DistrustForwarded: distrust})
		s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, mirror))}})
		got := s.get(t, "app.test/", claims...)
		var values []string
		for i := 0; i < len(claims); i += 2 {
			values = append(values, seen(got, claims[i]))
		}
		if diff := cmp.Diff(want, values); diff != "" {
			t.Errorf("distrust %t (-want +got):\n%s", distrust, diff)
		}
	}
}

func TestHopByHopHeaders(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "X-Back")
		w.Header().Set("X-Back", "1")
		w.Header().Set("Keep-Alive", "timeout=5")
		w.Header().Set("X-Stay", "1")
		mirror(w, r)
	}))}})
	got := s.get(t, "app.test/", "Connection", "X-Gone, keep-alive", "X-Gone", "1", "Keep-Alive", "5", "Proxy-Authorization", "x", "Te", "trailers, gzip", "X-Kept", "1")
	for name, want := range map[string]string{"X-Gone": "", "Keep-Alive": "", "Proxy-Authorization": "", "Te": "trailers", "X-Kept": "1"} {
		if seen(got, name) != want {
			t.Errorf("the app got %s %q; want %q", name, seen(got, name), want)
		}
	}
	for name, want := range map[string]string{"X-Back": "", "Keep-Alive": "", "X-Stay": "1"} {
		if got.header.Get(name) != want {
			t.Errorf("the client got %s %q; want %q", name, got.header.Get(name), want)
		}
	}
}

// A header with underscores is the one with dashes for many an app.
func TestLookalikeHeaders(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, mirror))}})
	forged := []string{"X_Forwarded_Client_Cert", "X-Forwarded_For", "x_forwarded_proto", "X_CF_InstanceID", "X_Cf-Applicationid", "X_VCAP_REQUEST_ID", "X_B3_TraceId", "B3_", "_Proxy", "Forwarded_", "X_Request_Start"}
	headers := []string{"My_Own", "kept", "X_Request_Id", "kept"}
	for _, name := range forged {
		headers = append(headers, name, "forged")
	}
	got := s.get(t, "app.test/", headers...)
	if n := strings.Count(got.body, "forged"); n != 1 || !strings.Contains(got.body, "_proxy: forged") { // no name of ours
		t.Errorf("the app got %d forged headers:\n%s", n, got.body)
	}
	for _, name := range []string{"My_own", "X_request_id"} {
		if seen(got, name) != "kept" {
			t.Errorf("the app did not get %s:\n%s", name, got.body)
		}
	}
}

// TestNoHTTP2Tunnel: an Upgrade to h2c is not for the app.
func TestNoHTTP2Tunnel(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, mirror))}})
	got := s.get(t, "app.test/", "Connection", "Upgrade, HTTP2-Settings", "Upgrade", "H2C", "Http2-Settings", "AAMAAABkAAQAAP__", "Proxy", "http://evil.test")
	for _, name := range []string{"Upgrade", "Connection", "Http2-Settings", "Proxy"} {
		if seen(got, name) != "" {
			t.Errorf("the app got %s %q; want none", name, seen(got, name))
		}
	}
}

func TestRequestURIComesThroughAsItIs(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, mirror))}})
	for _, uri := range []string{"/", "/a%2Fb/../c//d", "/?", "/?a=1;b=2&c=%zz", "//double/slash", "/a|b{c}", "*", "/%61?x=//y"} {
		method := "GET"
		if uri == "*" {
			method = "OPTIONS"
		}
		got := s.raw(t, method+" "+uri+" HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n")
		if !strings.Contains(got, method+" "+uri+" HTTP/1.1\n") && !(uri == "*" && strings.HasPrefix(got, "HTTP/1.1 200")) {
			t.Errorf("%s: got %q", uri, got)
		}
	}
	got := s.raw(t, "GET http://app.test/abs?q HTTP/1.1\r\nHost: ignored.test\r\nConnection: close\r\n\r\n")
	if !strings.Contains(got, "GET /abs?q HTTP/1.1\nHost: app.test\n") {
		t.Errorf("absolute form: got %q", got)
	}
}

func TestStickySessions(t *testing.T) {
	s := newSite(t, Config{})
	session := func(attributes string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/api/login" {
				w.Header().Set("Set-Cookie", "JSESSIONID=abc"+attributes)
			}
			if r.URL.Path == "/api/own" {
				w.Header().Add("Set-Cookie", "JSESSIONID=abc")
				w.Header().Add("Set-Cookie", "__VCAP_ID__=own")
			}
			fmt.Fprint(w, r.Header.Get("X-Cf-Instanceid"))
		}
	}
	both := func(attributes string) Route {
		r := route("app.test", app(t, "one", 0, session(attributes)), app(t, "two", 1, session(attributes)))
		r.Path = "/api"
		return r
	}
	vcap := func(a answer) string {
		for _, c := range a.header.Values("Set-Cookie") {
			if strings.HasPrefix(c, "__VCAP_ID__") {
				return c
			}
		}
		return ""
	}
	for attributes, want := range map[string]string{
		"": "; Path=/api; HttpOnly",
		"; Secure; SameSite=Strict; Path=/x; Expires=Wed, 21 Oct 2065 07:28:00 GMT": "; Path=/api; Expires=Wed, 21 Oct 2065 07:28:00 GMT; HttpOnly; Secure; SameSite=Strict",
		"; Max-Age=100": "; Path=/api; HttpOnly",
		"; Max-Age=0":   "; Path=/api; Max-Age=0; HttpOnly",
	} {
		s.Set(Table{Routes: []Route{both(attributes)}})
		got := s.get(t, "app.test/api/login")
		if vcap(got) != "__VCAP_ID__="+got.body+want {
			t.Errorf("%q: got cookie %q; want %q", attributes, vcap(got), want)
		}
	}
	for range 4 {
		if got := s.get(t, "app.test/api", "Cookie", "JSESSIONID=abc; __VCAP_ID__=two"); got.body != "two" || vcap(got) != "" {
			t.Errorf("got %q, cookie %q; want the session's instance and no new cookie", got.body, vcap(got))
		}
	}
	if got := s.get(t, "app.test/api", "Cookie", "JSESSIONID=abc; __VCAP_ID__=gone"); vcap(got) != "__VCAP_ID__="+got.body+"; Path=/api; HttpOnly" {
		t.Errorf("moved session: got cookie %q", vcap(got))
	}
	if got := s.get(t, "app.test/api"); vcap(got) != "" {
		t.Errorf("no session: got cookie %q", vcap(got))
	}
	if got := s.get(t, "app.test/api/own"); !slices.Equal(got.header.Values("Set-Cookie"), []string{"JSESSIONID=abc", "__VCAP_ID__=own"}) {
		t.Errorf("own cookie: got %q", got.header.Values("Set-Cookie"))
	}
	var bodies []string
	for range 4 {
		bodies = append(bodies, s.get(t, "app.test/api", "Cookie", "__VCAP_ID__=two").body)
	}
	if !slices.Contains(bodies, "one") {
		t.Errorf("got %q; want no stickiness without a session", bodies)
	}
}

func TestAccessLog(t *testing.T) {
	s := newSite(t, Config{})
	endpoint := app(t, "guid-7", 7, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "short and stout")
	})
	s.Set(Table{Routes: []Route{route("app.test", endpoint), route("empty.test"), route("dead.test", endpointOf(deadAddr(t), "dead", 3))}})
	s.raw(t, "POST /pot?a=\"b HTTP/1.1\r\nHost: app.test\r\nUser-Agent: kettle\r\nReferer: http://x/\r\nX-Forwarded-For: 1.2.3.4\r\nConnection: close\r\nContent-Length: 5\r\n\r\nwater")
	s.get(t, "none.test/")
	s.get(t, "empty.test/")
	s.get(t, "dead.test/")
	const (
		at    = `\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z\]`
		num   = `\d+\.\d{6}`
		local = `"127\.0\.0\.1:\d+"`
		id    = `vcap_request_id:"[0-9a-f-]{36}" response_time:` + num + ` gorouter_time:`
	)
	want := []string{
		`^` + appGUID + ` app\.test - ` + at + ` "POST /pot\?a=\\"b HTTP/1\.1" 418 5 15 "http://x/" "kettle" ` + local + ` "` + endpoint.Address + `" x_forwarded_for:"1\.2\.3\.4, 127\.0\.0\.1" x_forwarded_proto:"http" ` + id + num + ` app_id:"` + appGUID + `" app_index:"7" instance_id:"guid-7" x_cf_routererror:"-"$`,
		`^ none\.test - ` + at + ` "GET / HTTP/1\.1" 404 0 \d+ "-" "Go-http-client/1\.1" ` + local + ` "-" x_forwarded_for:"-" x_forwarded_proto:"-" ` + id + `"-" app_id:"-" app_index:"-" instance_id:"-" x_cf_routererror:"unknown_route"$`,
		`^ empty\.test - .* 404 0 \d+ .* x_cf_routererror:"unknown_route"$`,
		`^` + appGUID + ` dead\.test - .* 502 0 \d+ .* app_index:"3" instance_id:"dead" x_cf_routererror:"endpoint_failure \(dial tcp .*: connect: connection refused\)"$`,
	}
	eventually(t, "the log", func() bool { return len(s.lines()) >= len(want) }) // of a request that was answered
	got := s.lines()
	if len(got) != len(want) {
		t.Fatalf("got %d lines %q; want %d", len(got), got, len(want))
	}
	for i := range want {
		if !regexp.MustCompile(want[i]).MatchString(got[i]) {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
}

// TestNoContentTypeIsGuessed leaves an answer without a type without one (gorouter:
// proxy/utils/responsewriter.go), both ways.
func TestNoContentTypeIsGuessed(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{route("app.test", app(t, "app", 0, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = nil
		fmt.Fprint(w, "<html>")
	}))}})
	for _, upgrade := range []string{"", "h2c"} { // the latter is net/http's
		got := s.get(t, "app.test/", "Upgrade", upgrade, "Connection", "close")
		if have, ok := got.header["Content-Type"]; ok || got.body != "<html>" {
			t.Errorf("got type %q and %q; want none", have, got.body)
		}
	}
}

func TestTimesOfTheLog(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0.000000", 1500: "0.000002", time.Hour + 1234567*time.Microsecond: "3601.234567", 999999600: "1.000000"} {
		if got := string(appendSeconds(nil, d)); got != want {
			t.Errorf("%d: got %s; want %s", d, got, want)
		}
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	if got, want := string(appendTime(nil, at)), at.Format("2006-01-02T15:04:05.000000000Z"); got != want {
		t.Errorf("got %s; want %s", got, want)
	}
	for _, text := range []string{"", "a b~", "\"", "\\", "é", "\x7f", "\n"} {
		if got, want := string(appendQuote(nil, text)), strconv.Quote(text); got != want {
			t.Errorf("got %s; want %s", got, want)
		}
	}
}

func TestTruncate(t *testing.T) {
	if got := truncate(strings.Repeat("x", 2001), "REFERER", 1000); len(got) > 1000 || !strings.Contains(got, "...REFERER-TOO-LONG-TO-LOG--TRUNCATED") {
		t.Errorf("got %d bytes %.80q", len(got), got)
	}
}
