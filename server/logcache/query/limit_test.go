package query

import (
	"strings"
	"testing"
)

// What makes gigabytes of a few samples is refused before it is begun.
func TestLimits(t *testing.T) {
	c := measured()
	nest := func(times int, by string) string {
		text := `cpu{source_id="a"}`
		for range times {
			text = `label_replace(` + text + `, "x", "` + by + `", "source_id", "(.*)")`
		}
		return text
	}
	join := `cpu{source_id="a"}`
	for range 6 {
		join = `label_join(` + join + `, "x", "-"` + strings.Repeat(`, "x"`, 20) + `)`
	}
	for name, tt := range map[string]struct{ query, want string }{
		"replaced as people do": {nest(4, "$1"), "200 "},
		"replaced again":        {nest(2, strings.Repeat("$1", 5000)), "makes labels of more than"},
		"replaced in brackets":  {strings.NewReplacer(`"x", "`, `"x", ("`, `", "source_id"`, `"), "source_id"`).Replace(nest(2, strings.Repeat("$1", 5000))), "makes labels of more than"},
		"joined again":          {join, "makes labels of more than"},
		"selected again":        {strings.Repeat(`cpu{source_id="a"} + `, 100) + `cpu{source_id="a"}`, "query has 101 selectors; at most 100 are answered"},
		"a large pattern":       {`cpu{source_id="a",x=~"` + strings.Repeat("a{1000}", 200) + `"}`, "regular expression is too large"},
		"one in a function":     {`label_replace(cpu{source_id="a"}, "x", "y", "source_id", '` + strings.Repeat("a{1000}", 200) + `')`, "regular expression is too large"},
	} {
		if got := ask(c, "query", "query", tt.query, "time", "1020"); !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %.300s; want %s", name, got, tt.want)
		}
	}
}
