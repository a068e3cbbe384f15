package container

import (
	"testing"
	"time"
)

func TestParsePressure(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"some avg10=55.79 avg60=17.90 avg300=13.27 total=1234567\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n": 1234567 * time.Microsecond,
		"full avg10=0.00 total=9\n": -1,
		"some avg10=0.00\n":         -1,
		"":                          -1,
	} {
		got, ok := parsePressure([]byte(text))
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: got %v, %v; want %v", text, got, ok, want)
		}
	}
}

// Of two containers on one processor each waits while the other runs, and a container that sleeps does not.
func TestStarved(t *testing.T) { eachKind(t, testStarved) }

func testStarved(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	for id, program := range map[string]string{"one": "spin", "two": "spin", "idle": "sleep"} {
		_, r := b.start(t, b.spec(id, program))
		waitLine(t, r, "ready\n")
	}
	const long = 300 * time.Millisecond
	for round := 0; ; round++ { // the one that sleeps may still be on its way there
		one, two, idle := b.Starved("one"), b.Starved("two"), b.Starved("idle")
		for b.Starved("one")-one < long || b.Starved("two")-two < long {
			time.Sleep(10 * time.Millisecond)
		}
		got := b.Starved("idle") - idle
		if got < long/2 {
			break
		}
		if round == 10 {
			t.Fatalf("a container that sleeps waited %v for a processor, others %v", got, long)
		}
	}
	if got := b.Starved("none"); got != 0 {
		t.Errorf("a container that there is not waited %v", got)
	}
}
