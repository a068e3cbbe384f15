package front

import "testing"

// The system's hosts are never an app's, whatever the table of routes says.
func TestSystemHostsComeFirst(t *testing.T) {
	f := &Front{Domain: "apps.test"}
	for host, want := range map[string]bool{
		"api.apps.test": true, "UAA.apps.test:8080": true, "login.apps.test.": true, "log-cache.apps.test": true, "console.apps.test": true,
		"localhost": true, "127.0.0.1:8080": true, "[::1]:80": true,
		"apps.test": false, "hello.apps.test": false, "uaa.other.test": false, "": false,
	} {
		if got := f.isAPI(host); got != want {
			t.Errorf("%q: got %t", host, got)
		}
	}
}
