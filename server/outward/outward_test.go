package outward

import (
	"errors"
	"testing"
)

func TestControl(t *testing.T) {
	for _, c := range []struct {
		address        string
		refused, local bool
	}{
		{"192.0.2.1:514", false, false}, {"10.0.0.1:514", false, false}, {"[2001:db8::1]:514", false, false}, {"[fd00:ec2::1]:80", false, false},
		{"127.0.0.1:514", true, false}, {"127.8.0.1:514", true, false}, {"[::1]:514", true, false}, {"[::ffff:127.0.0.1]:514", true, false},
		{"127.0.0.1:514", false, true}, {"[::1]:514", false, true},
		{"0.0.0.0:514", true, true}, {"[::]:514", true, true}, {"224.0.0.1:514", true, true},
		{"169.254.169.254:80", true, true}, {"[fe80::1%lo]:80", true, true}, {"[::ffff:169.254.169.254]:80", true, true}, {"[fd00:ec2::254]:80", true, true},
		{"[64:ff9b::169.254.169.254]:80", true, true}, {"[64:ff9b::127.0.0.1]:80", true, false}, {"[64:ff9b::192.0.2.1]:80", false, false},
	} {
		if err := Control(c.local)(t.Context(), "tcp", c.address, nil); errors.Is(err, ErrAddress) != c.refused {
			t.Errorf("%s, local %t: got %v; want refused %t", c.address, c.local, err, c.refused)
		}
	}
	if Control(true)(t.Context(), "tcp", "nowhere", nil) == nil {
		t.Error("what is no address was let through")
	}
}
