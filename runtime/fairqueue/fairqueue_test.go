package fairqueue

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestOneDoesNotHoldAll: one user asks for everything first.
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
					t.Fatalf("no user has a slot; want %s", w)
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
		release <- struct{}{} // of any user: c has the fewest
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

// TestUsersTakeTurns: one user waits for a hundred slots when others come.
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
	for next := slot.Next(); slot.PassOn(); next = slot.Next() {
		user := slices.Collect(maps.Keys(queue.held))[0]
		if user != next {
			t.Errorf("%s got its turn; %s was said to be next", user, next)
		}
		order = append(order, user)
		slot = &Slot{queue: queue, user: user}
	}
	if got, want := strings.Join(order[:6], " "), "greedy a b greedy a greedy"; got != want || len(order) != 103 {
		t.Errorf("got %s, …: %d; want %s, …: 103", got, len(order), want)
	}
	if next := slot.Next(); next != "" {
		t.Errorf("%s is next; no user waits", next)
	}
	slot.Release()
	if queue.free != 1 || len(queue.held)+len(queue.waiting)+len(queue.last) != 0 {
		t.Errorf("left %+v", queue)
	}
}

// TestAUserWhoGaveUpIsNotPutBack: one user waits for many slots, and leaves.
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
		slot = &Slot{queue: queue, user: slices.Collect(maps.Keys(queue.held))[0]}
	}
	if slot.user != "b" {
		t.Errorf("%s is before who gave up", slot.user)
	}
}

// greedy asks a queue for as many slots as it can get, each for 10 ms.
type greedy struct {
	mu        sync.Mutex
	now, most int // slots at once
	turns     int
}

func (g *greedy) ask(ctx context.Context, q *Queue, user string) {
	for {
		slot, err := q.Acquire(ctx, user)
		if err != nil {
			return
		}
		g.count(1)
		time.Sleep(10 * time.Millisecond)
		g.count(-1)
		slot.Release()
	}
}

func (g *greedy) count(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now += n
	g.most = max(g.most, g.now)
	if n > 0 {
		g.turns++
	}
}

// during is how many turns it gets in a time, and how many of them at once.
func (g *greedy) during(d time.Duration) (turns, most int) {
	g.mu.Lock()
	g.turns, g.most = 0, g.now
	g.mu.Unlock()
	time.Sleep(d)
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.turns, g.most
}

// TestAPacedQueue has one user ask for all the time: alone for both slots, and
// beside another for one at a time, with a long rest after each once its credit is
// used up. The other one does not rest after a long turn.
func TestAPacedQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, g := NewPaced(3, 2), &greedy{}
		ctx, cancel := context.WithCancel(t.Context())
		for range 8 {
			go g.ask(ctx, queue, "greedy")
		}
		if turns, most := g.during(time.Second); most != 2 || turns < 190 {
			t.Errorf("alone: got %d turns, up to %d at once; want some 200, two at once", turns, most)
		}
		asks := func(length time.Duration) {
			began := time.Now()
			slot, err := queue.Acquire(t.Context(), "modest")
			if err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(began); waited > 0 {
				t.Errorf("the other waited %v; want a slot at once", waited)
			}
			time.Sleep(length)
			slot.Release()
		}
		asks(0)
		g.during(200 * time.Millisecond)
		for range 10 { // another asks now and then
			asks(40 * time.Millisecond)
			asks(0)
			time.Sleep(20 * time.Millisecond) // what was begun before is done
			if turns, most := g.during(500 * time.Millisecond); most != 1 || turns < 8 || turns > 10 {
				t.Errorf("beside another: got %d turns in half a second, up to %d at once; want some 8, one at a time", turns, most)
			}
			if !queue.Competing() {
				t.Error("beside another: they do not compete")
			}
		}
		time.Sleep(present + lightRest*maxRest)
		if turns, _ := g.during(time.Second); turns < 190 {
			t.Errorf("alone again: got %d turns; want some 200", turns)
		}
		if queue.Competing() {
			t.Error("alone again: it competes")
		}
		cancel()
		time.Sleep(lightRest * maxRest)
		synctest.Wait()
		if queue.free != 3 || len(queue.held)+len(queue.waiting)+len(queue.last) != 0 {
			t.Errorf("left %+v", queue)
		}
	})
}

// TestHeavyUsersLetLightOnesEnd has a light user take a slot at all times between
// the turns of a heavy one, which begins none meanwhile, unless that takes long.
func TestHeavyUsersLetLightOnesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, heavy := NewPaced(3, 2), &greedy{}
		ctx, cancel := context.WithCancel(t.Context())
		go heavy.ask(ctx, queue, "heavy")
		light := func() *Slot {
			slot, err := queue.Acquire(t.Context(), "light")
			if err != nil {
				t.Fatal(err)
			}
			return slot
		}
		for range 10 { // until it is heavy
			light().Release()
			time.Sleep(100 * time.Millisecond)
		}
		for at := range 30 {
			time.Sleep(time.Duration(at)*time.Millisecond + time.Microsecond) // never at the moment of a turn
			slot := light()
			if turns, _ := heavy.during(15 * time.Millisecond); turns > 0 {
				t.Errorf("%d ms after its rest began: got %d turns while a light user had a slot; want none", at, turns)
			}
			slot.Release()
			if turns, _ := heavy.during(200 * time.Millisecond); turns < 3 {
				t.Errorf("%d ms: got %d turns in 200 ms after it; want some 3", at, turns)
			}
		}
		slot := light()
		if turns, _ := heavy.during(400 * time.Millisecond); turns < 4 {
			t.Errorf("beside a light user who keeps its slot: got %d turns in 400 ms; want at least one each 100 ms", turns)
		}
		slot.Release()
		cancel()
		time.Sleep(lightRest * maxRest)
		synctest.Wait()
	})
}

// TestHeavyUsersRestHalf has two users ask for all the time: while no light user
// is present, each has half of the time.
func TestHeavyUsersRestHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, all := NewPaced(3, 2), map[string]*greedy{"first": {}, "second": {}}
		ctx, cancel := context.WithCancel(t.Context())
		for user, g := range all {
			go g.ask(ctx, queue, user)
		}
		time.Sleep(time.Second) // until both are heavy
		for user, g := range all {
			if turns, _ := g.during(time.Second); turns < 45 || turns > 55 {
				t.Errorf("%s: got %d turns in a second; want some 50", user, turns)
			}
		}
		cancel()
		time.Sleep(lightRest * maxRest)
		synctest.Wait()
	})
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
