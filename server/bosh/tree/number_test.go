package tree

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// scalars are values as the bosh CLI reads them (gopkg.in/yaml.v2), and as the
// director reads what the CLI sends (Psych 4): both were run for each line.
var scalars = []struct {
	text      string
	cli, sent any // a nil sent is the same
}{
	{"true", true, nil}, {"yes", true, nil}, {"On", true, nil}, {"off", false, nil}, {"NO", false, nil},
	{"'yes'", "yes", nil}, {"!!str on", "on", nil}, {"|-\n  no", "no", nil},
	{"0777", 511, nil}, {"0o17", 15, nil}, {"0x1F", 31, nil}, {"0b11", 3, nil}, {"1_000", 1000, nil}, {"+1", 1, nil}, {"-0", 0, nil},
	{"089", 89.0, 89}, {"1e3", 1000.0, 1000}, {"8080.0", 8080.0, 8080}, {"1.", 1.0, 1}, {"-0.0", math.Copysign(0, -1), 0}, {"100000.0", 1e5, 100000},
	{".5", 0.5, nil}, {"1.10", 1.1, nil}, {"1500000.0", 1500000.0, nil},
	{"6000000000", 6000000000, nil}, {"18446744073709551615", uint64(18446744073709551615), nil}, {"-9223372036854775808", math.MinInt64, nil},
	{"123456789012345678901234567890", 1.2345678901234568e+29, nil},
	{"2026-01-02", "2026-01-02", nil}, {"2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z", nil}, {"12:30", "12:30", nil}, {`"1e3"`, "1e3", nil}, {`"0777"`, "0777", nil},
	{`!!int "7"`, 7, nil}, {"!!float '1.5'", 1.5, nil}, {"!!float 3", 3.0, 3}, {`!!bool "yes"`, true, nil}, {"!!bool off", false, nil}, {`!!null ""`, nil, nil}, {`!!str "7"`, "7", nil},
	// The differences of docs/bosh.md: the CLI makes booleans of y and n, and the
	// director reads texts in 6e+09, and a number in the text 1,000.
	{"y", "y", nil}, {"n", "n", nil}, {"6000000000.0", 6e9, nil}, {"0.00001", 1e-5, nil}, {"1,000", "1,000", nil}, {".inf", ".inf", nil}, {".nan", ".nan", nil},
}

// TestScalarsAsBOSH holds that a value is the same wherever it comes from.
func TestScalarsAsBOSH(t *testing.T) {
	for _, s := range scalars {
		n, err := LoadBOSH([]byte(s.text))
		if err != nil {
			t.Fatalf("%s: %v", s.text, err)
		}
		for door, got := range map[string]any{"read": Value(n), "in JSON": throughJSON(t, Value(n)), "written": throughYAML(t, Value(n))} {
			if diff := cmp.Diff(s.cli, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", s.text, door, diff)
			}
		}
		want := s.sent
		if want == nil {
			want = s.cli
		}
		if diff := cmp.Diff(want, Sent(Value(n))); diff != "" {
			t.Errorf("%s, sent (-want +got):\n%s", s.text, diff)
		}
	}
}

func TestTagThatTheValueDoesNotFit(t *testing.T) {
	for text, want := range map[string]string{"a: !!int x": "line 1: cannot decode !!str `x` as a !!int", "\n!!bool '7'": "line 2: cannot decode !!int `7` as a !!bool"} {
		if n, err := LoadBOSH([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, %v; want the error %q", text, Value(n), err, want)
		}
	}
}

func throughJSON(t rapid.TB, v any) any {
	text, err := EncodeJSON(v)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeJSON(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return got
}

func throughYAML(t rapid.TB, v any) any {
	n, err := Of(v)
	if err != nil {
		t.Fatal(err)
	}
	text, err := Write(n)
	if err != nil {
		t.Fatal(err)
	}
	if n, err = LoadBOSH(text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return Value(n)
}

// TestValuesComeOutAsTheyWentIn does so through any sequence of the two forms in
// which values are sent and stored.
func TestValuesComeOutAsTheyWentIn(t *testing.T) {
	finite := rapid.Float64().Filter(func(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) })
	leaf := rapid.OneOf(
		rapid.Int().AsAny(), rapid.Uint64Min(1<<63).AsAny(), finite.AsAny(), rapid.Map(rapid.IntRange(-1e9, 1e9), func(n int) any { return float64(n) }),
		rapid.Bool().AsAny(), rapid.StringMatching("[ -~]{0,8}").AsAny(), rapid.SampledFrom([]any{"yes", "off", "0777", "1e3", "null", "~", "2026-01-02", "", nil}))
	value := rapid.Custom(func(t *rapid.T) any {
		m := map[string]any{}
		for _, key := range rapid.SliceOfN(rapid.StringMatching("[a-z]{1,3}"), 1, 4).Draw(t, "keys") {
			m[key] = []any{leaf.Draw(t, "item"), leaf.Draw(t, "item")}
		}
		return m
	})
	rapid.Check(t, func(t *rapid.T) {
		v := value.Draw(t, "value")
		got := v
		for _, json := range rapid.SliceOfN(rapid.Bool(), 1, 4).Draw(t, "json") {
			if json {
				got = throughJSON(t, got)
			} else {
				got = throughYAML(t, got)
			}
		}
		if diff := cmp.Diff(v, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
