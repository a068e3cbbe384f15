package identity

import (
	"crypto/rand"
	"crypto/rsa"
	"sync"

	"cupola/runtime/fault"
)

// keyBits is what instances' keys have. Diego takes 3072 of late; making such a
// key costs seven times as much, which is more than all else of a container's
// start, and the key is gone after a day.
const keyBits = 2048

// spareKeys is how many keys lie ready, so that a start need not wait for one.
const spareKeys = 8

// keys makes keys ahead of their use.
type keys struct {
	spare chan *rsa.PrivateKey

	mu      sync.Mutex
	filling bool
}

func newKeys() *keys {
	k := &keys{spare: make(chan *rsa.PrivateKey, spareKeys)}
	k.fill()
	return k
}

func (k *keys) next() (*rsa.PrivateKey, error) {
	defer k.fill()
	select {
	case key := <-k.spare:
		return key, nil
	default:
		return rsa.GenerateKey(rand.Reader, keyBits)
	}
}

// fill makes keys, one after the other, until there are enough.
func (k *keys) fill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.filling {
		return
	}
	k.filling = true
	fault.Go("identity", func() {
		for k.add() {
		}
	})
}

// add makes a key and reports whether there is room for more.
func (k *keys) add() bool {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err == nil {
		select {
		case k.spare <- key:
			return true
		default:
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.filling = false
	return false
}
