package identity

import (
	"bytes"
	"crypto/rsa"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// drained are keys without spare ones; none are made ahead. On a machine that is busy for a second one could be, but in a
// synctest bubble.
func drained() *keys {
	k := newKeys()
	k.filling.Lock()
	return k
}

func next(t *testing.T, k *keys, app string) *rsa.PrivateKey {
	t.Helper()
	key, err := k.next(app)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Instances of an app that start at once share a key; those of others have another.
func TestKeysOfABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := drained()
		defer k.quiet.Stop()
		all := make([]*rsa.PrivateKey, 8)
		var starts sync.WaitGroup
		for i := range all {
			starts.Go(func() {
				app := "app:a"
				if i == 0 {
					app = "app:b"
				}
				all[i], _ = k.next(app)
			})
		}
		starts.Wait()
		for i, key := range all {
			if key == nil || (key == all[1]) != (i > 0) {
				t.Errorf("start %d: got key %p; app a has %p", i, key, all[1])
			}
		}
		if a, b := next(t, k, ""), next(t, k, ""); a == b {
			t.Error("instances of no app share a key")
		}
	})
}

// While many apps start, half of the processors are left for others.
func TestKeysLeaveProcessors(t *testing.T) {
	k := drained()
	defer k.quiet.Stop()
	var starts sync.WaitGroup
	var left atomic.Int64
	for i := range 4 * runtime.GOMAXPROCS(0) {
		left.Add(1)
		starts.Go(func() {
			defer left.Add(-1)
			if _, err := k.next(fmt.Sprint("app:", i)); err != nil {
				t.Error(err)
			}
		})
	}
	stacks := make([]byte, 1<<20)
	for left.Load() > 0 {
		made := 0
		for stack := range bytes.SplitSeq(stacks[:runtime.Stack(stacks, true)], []byte("\n\n")) {
			// The authorities of other tests may still make keys ahead.
			if bytes.Contains(stack, []byte("rsa.GenerateKey(")) && bytes.Contains(stack, []byte(t.Name())) {
				made++
			}
		}
		if made > max(1, runtime.GOMAXPROCS(0)/2) {
			t.Errorf("%d keys are made at once", made)
			break
		}
		<-time.After(5 * time.Millisecond)
	}
	starts.Wait()
}

// An app's starts share a key for a while, whether or not others lie ready; then they get another.
func TestKeysAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := drained()
		defer k.quiet.Stop()
		first := next(t, k, "app:a")
		spare, err := k.fresh()
		if err != nil {
			t.Fatal(err)
		}
		k.spare <- spare
		time.Sleep(sharedFor - time.Millisecond)
		if second := next(t, k, "app:a"); second != first {
			t.Error("a start within the while took another key")
		}
		time.Sleep(time.Millisecond)
		if third := next(t, k, "app:a"); third != spare {
			t.Error("a key is shared for too long, or the spare one was not taken")
		}
	})
}

// An app's last key is kept no longer than it is shared.
func TestKeysAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := drained()
		defer k.quiet.Stop()
		next(t, k, "app:a")
		time.Sleep(sharedFor / 2)
		next(t, k, "app:b")
		k.quiet.Stop()
		for _, want := range []int{2, 1, 0} {
			k.mu.Lock()
			n := len(k.last)
			k.mu.Unlock()
			if n != want {
				t.Errorf("%d keys are remembered; want %d", n, want)
			}
			time.Sleep(sharedFor / 2)
			synctest.Wait()
		}
	})
}

// Keys are made ahead once no instance starts, as many as were needed before.
func TestKeysAreMadeAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeys()
		synctest.Wait()
		if n := len(k.spare); n != 0 {
			t.Errorf("%d keys were made at once", n)
		}
		time.Sleep(time.Minute)
		if n := len(k.spare); n != 1 {
			t.Errorf("got %d spare keys before any start; want 1", n)
		}
		for i := range 6 {
			next(t, k, fmt.Sprint("app:", i%3))
		}
		synctest.Wait()
		if n := len(k.spare); n != 0 {
			t.Errorf("%d keys were made beside starts", n)
		}
		time.Sleep(time.Minute)
		if n := len(k.spare); n != 3 {
			t.Errorf("got %d spare keys after starts of three apps; want 3", n)
		}
	})
}
