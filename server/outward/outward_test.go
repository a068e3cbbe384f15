package outward

import "testing"

func TestControl(t *testing.T) {
	for address, allowed := range map[string]bool{
		"127.0.0.1:514": false, "[::1]:514": false, "169.254.169.254:80": false, "[::ffff:127.0.0.1]:514": false, "0.0.0.0:1": false,
		"[fe80::1]:1": false, "224.0.0.1:1": false, "x": false, "192.0.2.1:514": true, "10.1.2.3:514": true, "[2001:db8::1]:514": true,
	} {
		if err := Control(false)(t.Context(), "tcp", address, nil); (err == nil) != allowed {
			t.Errorf("%s: got %v", address, err)
		}
	}
	if err := Control(true)(t.Context(), "tcp", "127.0.0.1:1", nil); err != nil {
		t.Errorf("got %v; want it allowed", err)
	}
}
