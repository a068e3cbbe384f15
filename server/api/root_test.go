package api

import (
	"net/http/httptest"
	"testing"

	"cupola/server/control"
)

func TestSSHIsAtTheHostOfTheAPI(t *testing.T) {
	for host, want := range map[string]string{
		"localhost:8080": "localhost:2222", "api.example.com": "api.example.com:2222", "[::1]:8080": "[::1]:2222", "[::1]": "[::1]:2222", "10.0.0.1:80": "10.0.0.1:2222",
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = host
		c := &call{s: &Server{Config: Config{SSH: SSHInfo{Address: "127.0.0.1:2222"}}}, Request: r}
		if got := sshAddress(c); got != want {
			t.Errorf("%s: got %s; want %s", host, got, want)
		}
	}
}

// The hosts of log streams are the system's, whatever host a client uses for the API
// (CC: app/controllers/runtime/root_controller.rb has them from its configuration).
func TestLogStreamsAreHostsOfTheSystem(t *testing.T) {
	s := &Server{Config: Config{Platform: control.Platform{URL: "http://api.example.com:8080"}}}
	for at, want := range map[string]string{
		"http://api.example.com:8080/": "http://log-stream.example.com:8080 ws://doppler.example.com:8080",
		"https://api.example.com/":     "https://log-stream.example.com wss://doppler.example.com",
		"https://[::1]:8443/":          "https://log-stream.example.com:8443 wss://doppler.example.com:8443",
	} {
		res, err := showRoot(&call{s: s, Request: httptest.NewRequest("GET", at, nil)})
		if err != nil {
			t.Fatal(err)
		}
		links := res.body.(doc)["links"].(doc)
		if got := links["log_stream"].(doc)["href"].(string) + " " + links["logging"].(doc)["href"].(string); got != want {
			t.Errorf("%s: got %s; want %s", at, got, want)
		}
	}
}
