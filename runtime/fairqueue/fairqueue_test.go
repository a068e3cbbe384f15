package fairqueue

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// TestOneDoesNotHoldAll has one ask for everything first.
func TestOneDoesNotHoldAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := New(4, 2)
		got := make(chan string, 100)
		release := make(chan struct{})
		take := func(who string) {
			go func() {
				slot, err := queue.Acquire(t.Context(), who)
				if err != nil {
					t.Error(err)
					return
				}
				got <- who
				<-release
				slot.Release()
			}()
			synctest.Wait()
		}
		next := func(want ...string) {
			t.Helper()
			synctest.Wait()
			for _, w := range want {
				select {
				case who := <-got:
					if who != w {
						t.Errorf("got %s; want %s", who, w)
					}
				default:
					t.Fatalf("nobody has a slot; want %s", w)
				}
			}
			if len(got) > 0 {
				t.Errorf("%s has a slot as well", <-got)
			}
		}
		for range 5 {
			take("greedy")
		}
		next("greedy", "greedy")
		take("a")
		take("b")
		next("a", "b")
		take("c")
		next()
		release <- struct{}{} // whoever's it is, c has the fewest
		next("c")
		close(release)
		synctest.Wait()
		for range 3 {
			if who := <-got; who != "greedy" {
				t.Errorf("got %s; want those who waited", who)
			}
		}
		if queue.free != 4 || len(queue.held) != 0 || len(queue.waiting) != 0 {
			t.Errorf("left %+v", queue)
		}
	})
}

func TestGivingUp(t *testing.T) {
	queue := New(1, 1)
	slot, err := queue.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := queue.Acquire(ctx, "b"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want that it was given up", err)
	}
	slot.Release()
	if slot, err = queue.Acquire(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	slot.Release()
}

// TestUsersTakeTurns has one user wait for a hundred slots when others come.
func TestUsersTakeTurns(t *testing.T) {
	queue := New(1, 1)
	slot, err := queue.Acquire(t.Context(), "greedy")
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		queue.enter("greedy")
	}
	for _, user := range []string{"a", "a", "b"} {
		queue.enter(user)
	}
	var order []string
	for slot.PassOn() {
		user := slices.Collect(maps.Keys(queue.held))[0]
		order = append(order, user)
		slot = &Slot{queue, user}
	}
	if got, want := strings.Join(order[:6], " "), "greedy a b greedy a greedy"; got != want || len(order) != 103 {
		t.Errorf("got %s, …: %d; want %s, …: 103", got, len(order), want)
	}
	slot.Release()
	if queue.free != 1 || len(queue.held)+len(queue.waiting)+len(queue.last) != 0 {
		t.Errorf("left %+v", queue)
	}
}

// TestAUserWhoGaveUpIsNotPutBack has one wait for much, and leave.
func TestAUserWhoGaveUpIsNotPutBack(t *testing.T) {
	queue := New(1, 1)
	slot, err := queue.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	var all []*waiter
	for range 100 {
		all = append(all, queue.enter("b"))
	}
	for _, w := range all {
		if !queue.leave(w) {
			t.Fatal("got a slot")
		}
	}
	for range 10 {
		queue.enter("a")
	}
	queue.enter("b")
	for range 2 { // one of a's may be before it
		slot.PassOn()
		slot = &Slot{queue, slices.Collect(maps.Keys(queue.held))[0]}
	}
	if slot.user != "b" {
		t.Errorf("%s is before who gave up", slot.user)
	}
}

// TestBoundsHold has any order of comings and goings.
func TestBoundsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 5).Draw(t, "total")
		each := rapid.IntRange(1, total).Draw(t, "each")
		queue := New(total, each)
		var held []string
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(held) > 0 && rapid.Bool().Draw(t, "gives back") {
				queue.release(held[0])
			} else {
				queue.enter(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "who"))
			}
			held = held[:0]
			for who, n := range queue.held {
				if n > each {
					t.Fatalf("%s has %d of at most %d", who, n, each)
				}
				for range n {
					held = append(held, who)
				}
			}
			if len(held)+queue.free != total || queue.free < 0 {
				t.Fatalf("%d of %d are held, and %d free", len(held), total, queue.free)
			}
			for _, w := range queue.waiting {
				if queue.free > 0 && queue.held[w.user] < each {
					t.Fatalf("%s waits, has %d, and %d are free", w.user, queue.held[w.user], queue.free)
				}
			}
		}
	})
}
