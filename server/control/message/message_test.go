package message

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFaultsComeInTheOrderOfTheChecks(t *testing.T) {
	m := Message{
		Metadata,
		Keys("name", "size", "part", "metadata"),
		Relationships(Attribute("space", Present, ToOne)),
		Attribute("name", String, Max(5)),
		OptionalAt("part.size", "part_size", Integer(AtLeast(1), AtMost(9))),
		Given("size", Attribute("size", Integer(Above(0)))),
	}
	for text, want := range map[string][]string{
		`{"name": "a", "relationships": {"space": {"data": {"guid": "s"}}}}`: {"Unknown field(s): 'relationships'"},
		`{"zebra": 1, "name": 7, "ape": 2, "size": null, "part": {"size": "10"}, "metadata": []}`: {"Metadata must be an object", "Unknown field(s): 'zebra', 'ape'",
			"Relationships 'relationships' is not an object", "Name must be a string", "Part size must be less than or equal to 9", "Size is not a number"},
		`{"name": "abcdef", "part": 5, "relationships": {"space": {"data": {"guid": 5}}}}`: {"Unknown field(s): 'relationships'",
			"Relationships Space guid must be a string", "Relationships Space guid must be between 1 and 200 characters", "Name is too long (maximum is 5 characters)"},
		`[]`: {"Unknown field(s): '_json'", "Relationships 'relationships' is not an object", "Name must be a string"},
	} {
		o, err := Parse([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if d := cmp.Diff(want, m.Faults(o)); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
}

func TestParseRefusesWhatIsNotJSON(t *testing.T) {
	for _, text := range []string{"", "{", `{"a"}`, `{"a": 1} x`, "name=x", `{"a": 01}`, strings.Repeat("[", 101) + strings.Repeat("]", 101)} {
		if o, err := Parse([]byte(text)); err == nil {
			t.Errorf("%.20q was taken as %v", text, o.Keys)
		}
	}
	o, err := Parse([]byte(`{"b": 1, "a": {"x": [1, "2", null]}, "b": 2}`))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"b", "a"}, o.Keys); d != "" || Text(o.Get("b")) != "2" || JSON(o.Get("a")) != `{"x":[1,"2",null]}` || o.Get("a.x.y") != nil {
		t.Errorf("%s; b is %s, a is %s", d, Text(o.Get("b")), JSON(o.Get("a")))
	}
}

// Whatever is sent, the checks look at it without a panic.
func FuzzFaults(f *testing.F) {
	for _, text := range []string{`{"metadata": {"labels": {"a/b": 5}}}`, `{"n": "1_0", "one": {"data": null}, "many": {"data": [{"guid": []}]}}`} {
		f.Add(text)
	}
	m := Message{Metadata, Keys("n"), Attribute("n", Integer(Above(0)), Min(1), URI, URIPath), Attribute("one", ToOne), Attribute("many", ToMany), Part("part", nil), Filled("x", GUID)}
	f.Fuzz(func(t *testing.T, text string) {
		if o, err := Parse([]byte(text)); err == nil {
			m.Faults(o)
		}
	})
}
