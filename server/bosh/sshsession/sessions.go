package sshsession

import (
	"bytes"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"cupola/store/cf"
)

// Lifetime is how long a key is accepted whose session is not closed, because the CLI was
// killed, for instance.
const Lifetime = 4 * time.Hour

// GatewayPrefix begins the names of the gateway's users.
const GatewayPrefix = "bosh-gateway-"

// maxSessions bounds what clients that never close a session keep in memory.
const maxSessions = 512

// ErrMany says that there are too many sessions.
var ErrMany = errors.New("too many SSH sessions are set up: end some of the commands that did; those of killed commands end by themselves, four hours after they began")

// Session is a key with all that it is accepted for.
type Session struct {
	User       string // the name that the key is accepted with
	Key        ssh.PublicKey
	Who        cf.Identity       // who had it set up
	Deployment string            // the name
	Instances  map[string]string // GUIDs by address
}

// Accepts reports whether a user may enter by a key.
func (s Session) Accepts(user string, key ssh.PublicKey) bool {
	return user == s.User && bytes.Equal(key.Marshal(), s.Key.Marshal())
}

// Sessions are those that are set up. The zero value has none.
type Sessions struct {
	mu  sync.Mutex
	all map[string]*kept // by gateway
}

type kept struct {
	Session
	ends time.Time
}

// Open sets up a session. Its gateway is the user name by which Find finds it, which no one
// can guess.
func (s *Sessions) Open(one Session) (gateway string, err error) {
	gateway = GatewayPrefix + strings.ToLower(rand.Text())
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(s.all, func(_ string, k *kept) bool { return now.After(k.ends) })
	if len(s.all) >= maxSessions {
		return "", ErrMany
	}
	if s.all == nil {
		s.all = map[string]*kept{}
	}
	s.all[gateway] = &kept{one, now.Add(Lifetime)}
	return gateway, nil
}

// Find returns the session of a gateway, unless it has ended.
func (s *Sessions) Find(gateway string) (Session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.all[gateway]
	if !ok || time.Now().After(k.ends) {
		return Session{}, false
	}
	return k.Session, true
}

// Close closes instances of a deployment to the keys of users: connections that are open
// stay.
func (s *Sessions) Close(deployment string, users func(name string) bool, instances []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.all, func(_ string, k *kept) bool {
		if k.Deployment != deployment || !users(k.User) {
			return false
		}
		left := maps.Clone(k.Instances) // others may read the old one
		maps.DeleteFunc(left, func(_, guid string) bool { return slices.Contains(instances, guid) })
		k.Instances = left
		return len(left) == 0
	})
}
