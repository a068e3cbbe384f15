package router

import (
	"fmt"
	"math"
	"strconv"
	"testing"
)

func namesOf(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("instance-%05d", i))
	}
	return names
}

func first(m *maglev, key string) (name string) {
	m.walk(key, func(i int) bool {
		name = m.names[i]
		return false
	})
	return name
}

func TestMaglevSharesOut(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 100, 409, 410, 1000} {
		m := newMaglev(namesOf(n))
		count := make([]int, n)
		for _, name := range m.slots {
			count[name]++
		}
		least, most := len(m.slots), 0
		for _, c := range count {
			least, most = min(least, c), max(most, c)
		}
		if most-least > 1 {
			t.Errorf("of %d names one has %d slots and another %d", n, least, most)
		}
		if keys := 1000 * n; n <= 10 {
			spread := map[string]float64{}
			for i := range keys {
				spread[first(m, "tenant-"+strconv.Itoa(i))]++
			}
			for name, got := range spread {
				if math.Abs(got-1000) > 150 {
					t.Errorf("of %d names %s got %.0f keys; want about 1000", n, name, got)
				}
			}
		}
	}
}

// TestMaglevIsStable takes a name away and puts it back: of the keys of others
// hardly any move, and each key is where it was in the end.
func TestMaglevIsStable(t *testing.T) {
	names := namesOf(10)
	all, fewer := newMaglev(names), newMaglev(append(append([]string{}, names[:4]...), names[5:]...))
	again := newMaglev(namesOf(10))
	moved := 0
	for i := range 10000 {
		key := strconv.Itoa(i)
		was, is := first(all, key), first(fewer, key)
		if was != names[4] && was != is {
			moved++
		}
		if is == names[4] || first(again, key) != was {
			t.Fatalf("%s: %s, %s, %s", key, was, is, first(again, key))
		}
	}
	if moved > 1000 {
		t.Errorf("%d of 10,000 keys moved that did not have to", moved)
	}
}

// hashSite is a site of instances under a route that is hashed by X-Tenant.
func hashSite(t *testing.T, o Options, n int) (*site, []Endpoint) {
	t.Helper()
	s := newSite(t, Config{})
	var endpoints []Endpoint
	for i := range n {
		endpoints = append(endpoints, app(t, fmt.Sprintf("i%d", i), i, nil))
	}
	o.LoadBalancing, o.HashHeader = Hash, "x-tenant"
	s.Set(Table{Routes: []Route{{Host: "a.test", AppGUID: appGUID, Options: o, Endpoints: endpoints}}})
	return s, endpoints
}

func (s *site) tenant(t *testing.T, name string) (instance string) {
	t.Helper()
	if name == "" {
		return s.get(t, "a.test/").body
	}
	return s.get(t, "a.test/", "X-Tenant", name).body
}

func TestRequestsGoByHeader(t *testing.T) {
	s, endpoints := hashSite(t, Options{}, 4)
	home := map[string]string{}
	for i := range 40 {
		tenant := "t" + strconv.Itoa(i)
		home[tenant] = s.tenant(t, tenant)
		if again := s.tenant(t, tenant); again != home[tenant] {
			t.Errorf("%s: got %s, then %s", tenant, home[tenant], again)
		}
	}
	without := map[string]int{}
	for range 40 {
		without[s.tenant(t, "")]++
	}
	for _, e := range endpoints {
		if without[e.InstanceGUID] != 10 {
			t.Errorf("got %v; want requests without the header to go round", without)
		}
	}
	o := Options{LoadBalancing: Hash, HashHeader: "X-Tenant"}
	s.Set(Table{Routes: []Route{{Host: "a.test", AppGUID: appGUID, Options: o, Endpoints: endpoints[1:]}}})
	for tenant, was := range home {
		if is := s.tenant(t, tenant); is == endpoints[0].InstanceGUID {
			t.Errorf("%s went to an instance that is gone", tenant)
		} else if was != endpoints[0].InstanceGUID && is != was {
			t.Logf("%s moved from %s to %s", tenant, was, is)
		}
	}
	dead := endpoints[1]
	dead.Address = deadAddr(t)
	s.Set(Table{Routes: []Route{{Host: "a.test", AppGUID: appGUID, Options: o, Endpoints: []Endpoint{endpoints[0], dead}}}})
	for tenant := range home {
		if is := s.tenant(t, tenant); is != endpoints[0].InstanceGUID {
			t.Errorf("%s got %q; want the one that lives", tenant, is)
		}
	}
}

// TestHashBalance has requests of one tenant under way: of those that are too
// many for its instance, all go to the one that follows.
func TestHashBalance(t *testing.T) {
	endpoints := make([]*endpoint, 4)
	for i := range endpoints {
		endpoints[i] = newEndpoint(endpointOf(fmt.Sprintf("10.0.0.%d:8080", i), fmt.Sprintf("i%d", i), i), &backend{requests: newInflight()})
	}
	all := func(*endpoint) bool { return true }
	h := newHashed(Options{HashHeader: "X", HashBalance: 1.5}, endpoints, nil)
	p := &pool{endpoints: endpoints, hashed: h}
	home, order := h.pick("tenant", all), []string{}
	h.table.walk("tenant", func(i int) bool { order = append(order, h.endpoints[i].InstanceGUID); return true })
	if home.InstanceGUID != order[0] || len(order) != 4 {
		t.Fatalf("got %s, %v", home.InstanceGUID, order)
	}
	for _, e := range endpoints {
		for range 10 {
			e.acquire()
		}
	}
	for range 9 { // 19 where the average is 12.25
		home.acquire()
	}
	if got := p.pick(endpoints, choice{key: "tenant"}); got != h.pick("tenant", all) || got == home {
		t.Errorf("got %s; want the one after %s", got.InstanceGUID, home.InstanceGUID)
	} else if got.InstanceGUID != order[1] {
		t.Errorf("got %s; want %s", got.InstanceGUID, order[1])
	}
	if got := h.pick("tenant", func(e *endpoint) bool { return e == home }); got != home {
		t.Errorf("got %v; want the full one, where no other is left", got)
	}
	h.balance = 0
	if got := h.pick("tenant", all); got != home {
		t.Errorf("got %s; want %s whatever it has to do", got.InstanceGUID, home.InstanceGUID)
	}
	again := newHashed(Options{HashHeader: "X"}, append([]*endpoint{}, endpoints[3], endpoints[0], endpoints[2], endpoints[1]), h)
	if again.table != h.table {
		t.Error("the table is made anew for the same endpoints")
	}
}

func BenchmarkHashed(b *testing.B) {
	endpoints := make([]*endpoint, 50)
	for i := range endpoints {
		endpoints[i] = newEndpoint(endpointOf(fmt.Sprintf("10.0.0.%d:8080", i), fmt.Sprintf("i%d", i), i), &backend{requests: newInflight()})
	}
	h := newHashed(Options{HashHeader: "X", HashBalance: 1.5}, endpoints, nil)
	all := func(*endpoint) bool { return true }
	b.Run("pick", func(b *testing.B) {
		for b.Loop() {
			h.pick("tenant", all)
		}
	})
	b.Run("table", func(b *testing.B) {
		for b.Loop() {
			newMaglev(h.table.names)
		}
	})
}
