package turns

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// TestOneDoesNotHoldAll has one ask for everything first.
func TestOneDoesNotHoldAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := New(4, 2)
		got := make(chan string, 100)
		release := make(chan struct{})
		take := func(who string) {
			go func() {
				done, err := turns.Take(t.Context(), who)
				if err != nil {
					t.Error(err)
					return
				}
				got <- who
				<-release
				done()
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
		if turns.free != 4 || len(turns.held) != 0 || len(turns.waiting) != 0 {
			t.Errorf("left %+v", turns)
		}
	})
}

func TestGivingUp(t *testing.T) {
	turns := New(1, 1)
	done, err := turns.Take(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := turns.Take(ctx, "b"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want that it was given up", err)
	}
	done()
	if done, err = turns.Take(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	done()
}

// TestBoundsHold has any order of comings and goings.
func TestBoundsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 5).Draw(t, "total")
		each := rapid.IntRange(1, total).Draw(t, "each")
		turns := New(total, each)
		var held []string
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(held) > 0 && rapid.Bool().Draw(t, "gives back") {
				turns.put(held[0])
			} else {
				w := &waiter{rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "who"), make(chan struct{})}
				turns.waiting = append(turns.waiting, w)
				turns.grant()
			}
			held = held[:0]
			for who, n := range turns.held {
				if n > each {
					t.Fatalf("%s has %d of at most %d", who, n, each)
				}
				for range n {
					held = append(held, who)
				}
			}
			if len(held)+turns.free != total || turns.free < 0 {
				t.Fatalf("%d of %d are held, and %d free", len(held), total, turns.free)
			}
			for _, w := range turns.waiting {
				if turns.free > 0 && turns.held[w.who] < each {
					t.Fatalf("%s waits, has %d, and %d are free", w.who, turns.held[w.who], turns.free)
				}
			}
		}
	})
}
