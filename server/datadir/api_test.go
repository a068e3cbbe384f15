package datadir

import "testing"

func TestLocalURL(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080", "192.0.2.7:80": "http://192.0.2.7:80", "[fd00::1]:80": "http://[fd00::1]:80",
		"0.0.0.0:8080": "http://127.0.0.1:8080", ":8080": "http://127.0.0.1:8080", "[::]:8080": "http://127.0.0.1:8080", "cupola.example.com:80": "http://cupola.example.com:80",
	} {
		if got := localURL(addr); got != want {
			t.Errorf("%s: got %s; want %s", addr, got, want)
		}
	}
}
