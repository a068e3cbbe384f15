package uaa

import (
	"context"
	"net/http"
	"time"

	"cupola/runtime/fairqueue"
	"cupola/server/bulkhead"
	"cupola/store"
)

// UAA's default lockout policy: five failures within an hour lock a name for
// five minutes. Unknown names are counted, too, so that lockouts do not reveal
// which names exist.
const (
	lockoutFailures = 5
	lockoutWindow   = time.Hour
	lockoutTime     = 5 * time.Minute
)

// failures are the failed logins of a name within the window.
type failures struct {
	n    int
	last time.Time
}

// lock reports whether they shut the name out.
func (f failures) lock(now time.Time) bool {
	return f.n >= lockoutFailures && now.Sub(f.last) <= lockoutTime
}

func (u *UAA) failures(ctx context.Context, name string) (f failures, err error) {
	err = u.store.Read(ctx, func(tx *store.Tx) error {
		f.n, f.last, err = store.LoginFailures.Count(tx, name, tx.Now.Add(-lockoutWindow))
		return err
	})
	return f, err
}

// guard compares a password with a user's stored hash, and counts failures. A
// name or an address that is locked gets an error, whatever the password.
//
// The count is read right before the comparison: otherwise a thousand
// concurrent requests would all find it low.
func (u *UAA) guard(r *http.Request, name string, stored, password []byte) (bool, error) {
	ctx := r.Context()
	if err := u.limit.check(r); err != nil {
		return false, err
	}
	slot, err := u.acquire(r, name)
	if err != nil {
		return false, err
	}
	defer slot.Release()
	before, err := u.failures(ctx, name)
	if err != nil {
		return false, err
	}
	if before.lock(time.Now()) {
		return false, refuse(http.StatusUnauthorized, "unauthorized", "Your account has been locked because of too many failed attempts to login.")
	}
	same := u.proved.compare(time.Now(), stored, password)
	if same && before.n == 0 {
		return true, nil
	}
	if !same {
		u.limit.failed(r)
	}
	// A client that hangs up must not get its guess for nothing.
	err = u.store.Write(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		if same {
			return store.LoginFailures.Forget(tx, name)
		}
		return store.LoginFailures.Add(tx, name, tx.Now, tx.Now.Add(-lockoutWindow))
	})
	return same, err
}

// acquire waits for a turn to compare a password. Names come by turns, so that who
// hammers one delays others by a comparison, and not by all that wait.
func (u *UAA) acquire(r *http.Request, name string) (*fairqueue.Slot, error) {
	address := bulkhead.AddressOf(r.RemoteAddr)
	if !u.waiting.Take(address) {
		return nil, refuse(http.StatusTooManyRequests, "too_many_requests", "Too many logins at once from your address. Try again in a few seconds.")
	}
	defer u.waiting.Put(address)
	return u.hashing.Acquire(r.Context(), address.String()+" "+name)
}
