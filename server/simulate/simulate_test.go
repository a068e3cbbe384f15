package simulate

import (
	"strings"
	"testing"
)

func TestAFleetComesToRest(t *testing.T) {
	script, err := ParseScript("start, crash 5%, lose 2, wait 1m, return 1, deploy 20%, leave 1, tasks 20, wait 1h")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), Config{Cells: 20, Instances: 2000, Seed: 1}, script, func(Measure) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range append(r.Steps, r.Idle) {
		if m.Running != 2000 || m.Desired != 2000 || m.Denied != 0 || m.Ticks >= maxTicks {
			t.Errorf("got %+v; want all 2000 to run", m)
		}
	}
	if r.Idle.Actions != 0 {
		t.Errorf("got %+v; want nothing to do", r.Idle)
	}
	if q := r.Quality; q.MeanUsed < 0.5 || q.MostUsed > 1 || q.Together > q.Processes/4 || q.Processes == 0 {
		t.Errorf("got %+v", q)
	}
}

func TestWhatHasNoRoomIsDenied(t *testing.T) {
	r, err := Run(t.Context(), Config{Cells: 4, Instances: 500, Seed: 2}, []Step{{Verb: "start"}, {Verb: "lose", N: 50, Percent: true}}, func(Measure) {})
	if err != nil {
		t.Fatal(err)
	}
	if last := r.Steps[1]; last.Denied == 0 || last.Denied+last.Running != 500 {
		t.Errorf("got %+v; want all of 500 to run or be denied", last)
	}
}

func TestScripts(t *testing.T) {
	for text, want := range map[string]string{
		"":              "say what happens",
		"start, fly 3":  `step "fly 3": write start, lose N`,
		"lose":          "start takes nothing, everything else one number or duration",
		"start 3":       "start takes nothing",
		"crash 101%":    `"101%" is not a number that it accepts`,
		"tasks 3%":      "is not a number",
		"wait 25h":      "is not a duration of up to 24h",
		"lose -1":       "is not a number",
		DefaultScript:   "",
		"wait 5m,start": "",
	} {
		_, err := ParseScript(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v; want %q", text, err, want)
		}
	}
}

func FuzzParseScript(f *testing.F) {
	f.Add(DefaultScript)
	f.Add("wait 1h30m, lose 5%")
	f.Fuzz(func(t *testing.T, text string) {
		steps, err := ParseScript(text)
		if err != nil {
			return
		}
		var texts []string
		for _, s := range steps {
			texts = append(texts, s.String())
		}
		again, err := ParseScript(strings.Join(texts, ", "))
		if err != nil || len(again) != len(steps) {
			t.Fatalf("got %v, %v; want %v", again, err, steps)
		}
		for i := range steps {
			if again[i] != steps[i] {
				t.Errorf("got %v; want %v", again[i], steps[i])
			}
		}
	})
}
