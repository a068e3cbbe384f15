package identity

import (
	"crypto/rand"
	"crypto/rsa"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"cupola/runtime/fault"
)

// keyBits is what instances' keys have. Diego takes 3072 of late; making such a
// key costs seven times as much, which is more than all else of a container's
// start, and the key is gone after a day.
const keyBits = 2048

const (
	// spareKeys is the most keys that lie ready. As many apps can start at once without
	// waiting for one. A daemon that used fewer keeps as many as it used, at least one.
	spareKeys = 8
	// Keys are made ahead when no instance was started for quietFor: during starts they
	// would take half of the processor time. After each follows a pause of restFactor times
	// as long as it took.
	quietFor   = time.Second
	restFactor = 3
	// sharedFor is how long the starts of an app take its last key. Then it is forgotten: a
	// key takes 8 kB of memory.
	sharedFor = time.Minute
	// maxShared is how many apps' keys are remembered.
	maxShared = 1024
)

// keys makes keys ahead of their use. Instances of an app that start within a minute share
// a key, as they share the app's other secrets; each still has its own certificate.
// Making a key takes more processor time than the rest of a start.
//
// At most half of the processors make keys: one takes some 0.1 s, for which others'
// requests would wait while many apps start.
type keys struct {
	spare   chan *rsa.PrivateKey
	making  chan struct{} // holds one for each key that is made
	starts  atomic.Int64  // of instances
	used    atomic.Int64  // keys
	filling sync.Mutex
	quiet   *time.Timer // begins to fill

	mu   sync.Mutex
	last map[string]*lastKey // by whose it is
}

// lastKey is the newest key of an app. Its lock is held while a key is made for it, so
// that starts at the same time make one.
type lastKey struct {
	mu   sync.Mutex
	key  *rsa.PrivateKey
	made time.Time
}

func newKeys() *keys {
	k := &keys{spare: make(chan *rsa.PrivateKey, spareKeys), making: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), last: map[string]*lastKey{}}
	k.quiet = time.AfterFunc(quietFor, k.fill)
	return k
}

// next is a key for an instance of an app; of "" it is for that instance alone.
func (k *keys) next(app string) (*rsa.PrivateKey, error) {
	k.starts.Add(1)
	k.quiet.Reset(quietFor)
	if app == "" {
		return k.fresh()
	}
	l := k.lastOf(app)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.key != nil && time.Since(l.made) < sharedFor {
		return l.key, nil
	}
	key, err := k.fresh()
	if err == nil {
		l.key, l.made = key, time.Now()
		time.AfterFunc(sharedFor, fault.Func("identity", func() { k.forget(app, l) }))
	}
	return key, err
}

// forget drops an app's last key if it is not shared any longer.
func (k *keys) forget(app string, l *lastKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last[app] == l && time.Since(l.made) >= sharedFor {
		delete(k.last, app)
	}
}

// fresh is a key that no one else has.
func (k *keys) fresh() (*rsa.PrivateKey, error) {
	k.used.Add(1)
	select {
	case key := <-k.spare:
		return key, nil
	default:
		return k.generate()
	}
}

func (k *keys) generate() (*rsa.PrivateKey, error) {
	k.making <- struct{}{}
	defer func() { <-k.making }()
	return rsa.GenerateKey(rand.Reader, keyBits)
}

func (k *keys) lastOf(app string) *lastKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.last[app]
	if l == nil {
		if len(k.last) >= maxShared {
			k.last = map[string]*lastKey{}
		}
		l = &lastKey{}
		k.last[app] = l
	}
	return l
}

func (k *keys) enough() int { return int(min(max(k.used.Load(), 1), spareKeys)) }

// fill makes keys, one after the other, until there are enough or a start makes it begin
// later. It returns at once.
func (k *keys) fill() {
	starts := k.starts.Load()
	fault.Go("identity", func() {
		if !k.filling.TryLock() {
			k.quiet.Reset(quietFor)
			return
		}
		defer k.filling.Unlock()
		for len(k.spare) < k.enough() && k.starts.Load() == starts {
			began := time.Now()
			key, err := k.generate()
			if err != nil {
				return
			}
			k.spare <- key
			<-time.After(restFactor * time.Since(began))
		}
	})
}
