package logpage

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestLines(t *testing.T) {
	const answer = `{"envelopes": {"batch": [
		{"timestamp": "5", "tags": {"source_type": "APP/PROC/WEB"}, "log": {"payload": "b25l"}},
		{"timestamp": "9", "tags": {"source_type": "RTR"}, "log": {"payload": "dHdv"}},
		{"timestamp": "7", "tags": {"source_type": "APP/PROC/WEB"}, "log": {"payload": "not base64"}},
		{"timestamp": "8", "tags": {"source_type": "APP/TASK/t"}, "log": {"payload": "dGhyZWU="}}]}}`
	var p Page
	if err := json.Unmarshal([]byte(answer), &p); err != nil {
		t.Fatal(err)
	}
	lines, last := p.Lines(func(source string) bool { return strings.HasPrefix(source, "APP") })
	if !slices.Equal(lines, []string{"one", "three"}) || last != 9 {
		t.Errorf("got %q, the last at %d; want one and three, the last at 9", lines, last)
	}
	if got := p.All(); len(got) != 3 || got[0] != (Line{5, "APP/PROC/WEB", "", "one"}) || got[2] != (Line{8, "APP/TASK/t", "", "three"}) {
		t.Errorf("got %v", got)
	}
	if got, want := Path("guid", 5), "/api/v1/read/guid?envelope_types=LOG&limit=1000&start_time=5"; got != want {
		t.Errorf("got %s; want %s", got, want)
	}
}
