// Package keylock has locks that are named by keys.
package keylock

import "sync"

// Locks serializes work on one key. The zero value is ready.
type Locks struct {
	mu   sync.Mutex
	held map[string]*lock
}

type lock struct {
	sync.Mutex
	waiters int
}

// Lock locks a key and returns the function that unlocks it.
func (k *Locks) Lock(key string) func() {
	k.mu.Lock()
	if k.held == nil {
		k.held = map[string]*lock{}
	}
	l := k.held[key]
	if l == nil {
		l = &lock{}
		k.held[key] = l
	}
	l.waiters++
	k.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.waiters--; l.waiters == 0 {
			delete(k.held, key)
		}
	}
}
