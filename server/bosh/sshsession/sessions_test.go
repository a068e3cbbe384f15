package sshsession

import (
	"crypto/ed25519"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"
)

func key(t *testing.T) ssh.PublicKey {
	t.Helper()
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestSessions opens sessions, which end by Close for what it names, or by themselves.
func TestSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all Sessions
		one, other := key(t), key(t)
		open := func(user string, key ssh.PublicKey) string {
			gateway, err := all.Open(Session{User: user, Key: key, Deployment: "d", Instances: map[string]string{"10.0.0.1": "a", "10.0.0.2": "b"}})
			if err != nil {
				t.Fatal(err)
			}
			return gateway
		}
		first, second := open("bosh_1", one), open("bosh_2", other)
		is := func(name string) func(string) bool { return func(user string) bool { return user == name } }
		s, ok := all.Find(first)
		if !ok || !s.Accepts("bosh_1", one) || s.Accepts("bosh_2", one) || s.Accepts("bosh_1", other) || first == second {
			t.Errorf("got %+v, %v; want the session of bosh_1, for its key alone", s, ok)
		}
		all.Close("d", is("bosh_1"), []string{"a"})
		if s, ok = all.Find(first); !ok || len(s.Instances) != 1 || s.Instances["10.0.0.2"] != "b" {
			t.Errorf("got %+v, %v; want the session for b alone", s, ok)
		}
		all.Close("e", is("bosh_1"), []string{"b"})
		if _, ok = all.Find(first); !ok {
			t.Error("the end of another deployment's sessions ended this one")
		}
		all.Close("d", is("bosh_1"), []string{"b"})
		if _, ok = all.Find(first); ok {
			t.Error("a closed session was found")
		}
		if s, ok = all.Find(second); !ok || len(s.Instances) != 2 {
			t.Errorf("got %+v, %v; want that of bosh_2 as it was", s, ok)
		}
		time.Sleep(Lifetime + time.Second)
		if _, ok = all.Find(second); ok {
			t.Error("a session did not end by itself")
		}
		for range maxSessions {
			open("bosh_3", one)
		}
		if _, err := all.Open(Session{}); !errors.Is(err, ErrMany) {
			t.Errorf("got %v; want %v", err, ErrMany)
		}
	})
}
