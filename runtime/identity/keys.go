package identity

import (
	"crypto/rand"
	"crypto/rsa"
	"sync"
	"sync/atomic"

	"cupola/runtime/fault"
)

// keyBits is what instances' keys have. Diego takes 3072 of late; making such a
// key costs seven times as much, which is more than all else of a container's
// start, and the key is gone after a day.
const keyBits = 2048

// spareKeys is the most keys that lie ready, so that a start need not wait for
// one: enough for a push, or the restart of an app of a few instances. A daemon
// that started fewer instances keeps as many keys as it started, at least one.
const spareKeys = 4

// keys makes keys ahead of their use.
type keys struct {
	spare   chan *rsa.PrivateKey
	taken   atomic.Int64
	filling sync.Mutex
}

func newKeys() *keys {
	k := &keys{spare: make(chan *rsa.PrivateKey, spareKeys)}
	k.fill()
	return k
}

func (k *keys) next() (*rsa.PrivateKey, error) {
	k.taken.Add(1)
	defer k.fill()
	select {
	case key := <-k.spare:
		return key, nil
	default:
		return rsa.GenerateKey(rand.Reader, keyBits)
	}
}

func (k *keys) enough() int { return int(min(max(k.taken.Load(), 1), spareKeys)) }

// fill makes keys, one after the other, until there are enough, unless an earlier
// call still does. It returns at once.
func (k *keys) fill() {
	fault.Go("identity", func() {
		if !k.filling.TryLock() {
			return
		}
		defer k.filling.Unlock()
		for len(k.spare) < k.enough() {
			key, err := rsa.GenerateKey(rand.Reader, keyBits)
			if err != nil {
				return
			}
			k.spare <- key
		}
	})
}
