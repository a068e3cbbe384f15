package api

import (
	"net/http/httptest"
	"testing"
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
