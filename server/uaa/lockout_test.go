package uaa

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"cupola/runtime/fairqueue"
	"cupola/store"
)

func TestFiveFailuresLockOut(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		f    failures
		want bool
	}{
		{failures{}, false},
		{failures{lockoutFailures - 1, now}, false},
		{failures{lockoutFailures, now}, true},
		{failures{lockoutFailures, now.Add(-lockoutTime)}, true},
		{failures{lockoutFailures, now.Add(-lockoutTime - 1)}, false},
		{failures{lockoutFailures + 1, now}, true}, // one more after the lockout
	} {
		if got := c.f.lock(now); got != c.want {
			t.Errorf("%+v: got %t", c.f, got)
		}
	}
}

const lockedText = "Your account has been locked because of too many failed attempts to login."

// The count is on disk, counts a name however it is written, and says nothing
// of which names there are.
func TestLockoutOutlivesTheDaemon(t *testing.T) {
	u, srv := start(t)
	for _, name := range []string{"admin", "nobody"} {
		for i := range lockoutFailures {
			if status, body := grant(t, srv, "cf", "", password([]string{name, strings.ToUpper(name)}[i%2], "no")); status != 401 || body["error_description"] != "Bad credentials" {
				t.Fatalf("%s: got %d %v", name, status, body)
			}
		}
	}
	again, err := New(context.Background(), Config{Store: u.store, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	next := httptest.NewServer(again)
	defer next.Close()
	for _, name := range []string{"admin", "nobody"} {
		if status, body := grant(t, next, "cf", "", password(name, "pw")); status != 401 || body["error"] != "unauthorized" || body["error_description"] != lockedText {
			t.Errorf("%s: got %d %v", name, status, body)
		}
	}
}

func TestSuccessForgetsFailures(t *testing.T) {
	u, srv := start(t)
	for range lockoutFailures - 1 {
		grant(t, srv, "cf", "", password("admin", "no"))
	}
	if status, body := grant(t, srv, "cf", "", password("admin", "pw")); status != 200 {
		t.Fatalf("got %d %v", status, body)
	}
	if f, err := u.failures(t.Context(), "admin"); err != nil || f.n != 0 {
		t.Errorf("got %+v, %v", f, err)
	}
}

func TestOldFailuresAreForgotten(t *testing.T) {
	u, _ := start(t)
	now := time.Now()
	err := u.store.Write(t.Context(), func(tx *store.Tx) error {
		for i := range lockoutFailures {
			if err := store.LoginFailures.Add(tx, "joe", now.Add(-lockoutWindow-time.Duration(i)*time.Second), now.Add(-2*lockoutWindow)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if f, err := u.failures(t.Context(), "joe"); err != nil || f.n != 0 {
		t.Errorf("got %+v, %v", f, err)
	}
}

// Requests that all begin before the first of them has failed get no more
// guesses than those that come one by one, but for those compared at once.
func TestGuessesAtOnceAreCounted(t *testing.T) {
	u, srv := start(t)
	var mu sync.Mutex
	var wrong int
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, body := grant(t, srv, "cf", "", password("admin", "no")); body["error_description"] == "Bad credentials" {
				mu.Lock()
				defer mu.Unlock()
				wrong++
			}
		})
	}
	all.Wait()
	if most := lockoutFailures + u.hashers - 1; wrong < lockoutFailures || wrong > most {
		t.Errorf("%d guesses were compared; want %d at most", wrong, most)
	}
}

// An address that has many logins waiting gets no more of them in.
func TestLoginsTakeTurns(t *testing.T) {
	u, srv := start(t)
	var slots []*fairqueue.Slot
	for range u.hashers {
		slot, err := u.hashing.Acquire(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		slots = append(slots, slot)
	}
	var mu sync.Mutex
	tooMany, answered := 0, 0
	var all sync.WaitGroup
	login := func(name string) {
		all.Go(func() {
			status, _ := grant(t, srv, "cf", "", password(name, "no"))
			mu.Lock()
			defer mu.Unlock()
			if status == http.StatusTooManyRequests {
				tooMany++
				return
			}
			answered++
		})
	}
	for range maxWaiting {
		login("hammered")
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		mu.Lock()
		refused := tooMany
		mu.Unlock()
		if refused == maxWaiting/2 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d logins were refused; want half", refused, maxWaiting)
		}
	}
	for _, slot := range slots {
		slot.Release()
	}
	all.Wait()
	if answered != maxWaiting/2 || u.waiting.Used() != 0 {
		t.Errorf("%d logins were answered, %d wait", answered, u.waiting.Used())
	}
}

// The lockout remembers only names that a user can have.
func TestLongNamesAreNotRemembered(t *testing.T) {
	u, srv := start(t)
	long := strings.Repeat("x", maxUsername+1)
	if status, body := grant(t, srv, "cf", "", password(long, "pw")); status != 401 || body["error"] != "unauthorized" {
		t.Errorf("got %d %v", status, body)
	}
	if f, err := u.failures(t.Context(), long); err != nil || f.n != 0 {
		t.Errorf("got %+v, %v", f, err)
	}
}

// Who does not exist takes as long to refuse as who does.
func TestUnknownNamesTakeAsLong(t *testing.T) {
	if got, err := bcrypt.Cost(noUser); got != bcrypt.DefaultCost || err != nil {
		t.Errorf("got cost %d, %v; want %d", got, err, bcrypt.DefaultCost)
	}
}
