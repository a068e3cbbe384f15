package uaa

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

func TestProvedPasswords(t *testing.T) {
	stored, err := bcrypt.GenerateFromPassword([]byte("right"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	other, err := bcrypt.GenerateFromPassword([]byte("another"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	var p proved
	now := time.Now()
	for _, c := range []struct {
		what             string
		stored, password []byte
		want, known      bool
	}{
		{"a wrong password", stored, []byte("wrong"), false, false},
		{"the right one", stored, []byte("right"), true, true},
		{"the right one again", stored, []byte("right"), true, true},
		{"a wrong one after that", stored, []byte("wrong"), false, false},
		{"the old one after a change", other, []byte("right"), false, false},
		{"the hash as the password", stored, stored, false, false},
	} {
		if got := p.compare(now, c.stored, c.password); got != c.want {
			t.Errorf("%s: got %v", c.what, got)
		}
		if got := p.has(now, p.digest(c.stored, c.password)); got != c.known {
			t.Errorf("%s: remembered: %v", c.what, got)
		}
	}
	if p.has(now.Add(provedFor), p.digest(stored, []byte("right"))) {
		t.Error("a password is remembered for longer than it may be")
	}
}

func TestProvedPasswordsAreBounded(t *testing.T) {
	var p proved
	for i := range 3 * maxProved {
		p.add(time.Now(), p.digest([]byte("hash"), fmt.Append(nil, i)))
	}
	if len(p.until) > maxProved {
		t.Errorf("%d are remembered; at most %d may be", len(p.until), maxProved)
	}
}

// A password that is remembered is compared with no hash: this one would never match.
func TestProvedPasswordsTakeNoComparison(t *testing.T) {
	var p proved
	now := time.Now()
	p.add(now, p.digest([]byte("no hash of bcrypt"), []byte("right")))
	if !p.compare(now, []byte("no hash of bcrypt"), []byte("right")) {
		t.Error("a remembered password was compared again")
	}
}
