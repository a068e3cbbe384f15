package erb

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cupola/server/bosh/link"
)

// TestGoIsRuby has Go and Ruby render the same simple templates with the same
// values.
func TestGoIsRuby(t *testing.T) {
	ruby := hostRuby(t)
	// One process for all: what takes time is its start.
	generator := rapid.Custom(drawTemplate)
	all, at := make([]Template, 4000), make([]int, 4000)
	for i := range all {
		all[i], at[i] = generator.Example(i), i
	}
	out := make([][]byte, len(all))
	faults, err := render(t.Context(), ruby, all, at, out)
	if err != nil {
		t.Fatal(err)
	}
	said := map[*Template]string{}
	for _, f := range faults {
		said[f.Template] = f.Error()
	}
	inGo := 0
	for i := range all {
		got, err := newCache().render(&all[i])
		if errors.Is(err, errRuby) {
			continue
		}
		inGo++
		if text := fmt.Sprint(err); err != nil && text != said[&all[i]] || err == nil && said[&all[i]] != "" {
			t.Errorf("%q: got %v; Ruby says %q", all[i].Text, err, said[&all[i]])
		}
		if string(got) != string(out[i]) {
			t.Errorf("%q with %#v: got %q; Ruby renders %q", all[i].Text, *all[i].Context, got, out[i])
		}
	}
	if t.Logf("Go rendered %d of %d", inGo, len(all)); inGo < len(all)/2 {
		t.Error("they are too few")
	}
}

func drawTemplate(r *rapid.T) Template {
	values := drawValue(2)
	c := &Context{
		Spec:       map[string]any{"index": values.Draw(r, "index"), "a": map[string]any{"b": values.Draw(r, "spec")}},
		Properties: map[string]any{"x": values.Draw(r, "property"), "y": map[string]any{"z": values.Draw(r, "nested")}},
		Links:      map[string]link.Link{"l": {Address: "a", Properties: map[string]any{"x": values.Draw(r, "link")}}},
	}
	tags := []string{`p("x")`, `p('y.z')`, `p("x", "d")`, `p("y.z",-12)`, `p("y.none", true)`, `link("l").p("x")`, `link('l').p('x', [])`, "spec.a.b", "index", "link('l').address", "p('none')"}
	var b strings.Builder
	for range rapid.IntRange(1, 3).Draw(r, "tags") {
		b.WriteString(rapid.SampledFrom([]string{"", "\n", "text ", "  \n\n", "<%% ", "%> ", "<%# c %>", "<%# c -%>\n"}).Draw(r, "before"))
		b.WriteString(rapid.SampledFrom([]string{"<%= ", "<%=", "<%=\t"}).Draw(r, "open"))
		b.WriteString(rapid.SampledFrom(tags).Draw(r, "code"))
		b.WriteString(rapid.SampledFrom([]string{" %>", "%>", " -%>", "-%>\n", "-%>\n\n", "%>\n"}).Draw(r, "close"))
	}
	return Template{Group: "g", Job: "j", Source: "t", Text: []byte(b.String()), Context: c}
}

func drawValue(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.Bool().AsAny(),
		rapid.Int().AsAny(),
		rapid.Uint64().AsAny(),
		rapid.Float64Range(-1e30, 1e30).AsAny(),
		rapid.Map(rapid.IntRange(-40, 40), func(e int) any { return pow(e) }),
		rapid.String().AsAny(),
		rapid.StringMatching(`["'#{}$@\\ a-zé\n\t<%>=-]{0,12}`).AsAny(),
		rapid.SampledFrom([]string{"#{x}", "#$x", "#@x", "<%= p('x') %>", "a-%>\n", "€", "\x7f", "\u0085"}).AsAny(),
	}
	if depth > 0 {
		inner := drawValue(depth - 1)
		kinds = append(kinds, rapid.Map(rapid.SliceOfN(inner, 0, 3), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(rapid.StringMatching(`[a-z]{1,3}`), inner, 0, 2), func(m map[string]any) any { return m }))
	}
	return rapid.OneOf(kinds...)
}

func pow(e int) float64 {
	f := 1.0
	for ; e > 0; e-- {
		f *= 10
	}
	for ; e < 0; e++ {
		f /= 10
	}
	return f
}

// TestManyTemplates renders as many as a large deployment has, in one process.
func TestManyTemplates(t *testing.T) {
	ruby := hostRuby(t)
	var all []Template
	for job := range 140 {
		c := example()
		for i := range 10 {
			text := fmt.Sprintf("<%% if_p('port') do |port| -%%>\n<%%= port + %d %%>\n<%% end -%%>\n%s", i, strings.Repeat("line <%= spec.name.upcase %>\n", 50))
			all = append(all, Template{Group: "g", Job: fmt.Sprint(job), Source: "t", Text: []byte(text), Context: c})
		}
	}
	start := time.Now()
	out, err := Render(t.Context(), all, ruby)
	if err != nil || len(out) != len(all) || !strings.HasPrefix(string(out[9]), "4231\nline SERVERS\n") {
		t.Fatalf("got %d, %v", len(out), err)
	}
	t.Logf("rendered %d templates in %v", len(all), time.Since(start))
}
