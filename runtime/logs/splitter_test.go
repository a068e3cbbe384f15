package logs

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// split returns the lines of writes, the last one flushed.
func split(writes ...string) []string {
	var got []string
	s := splitter{max: maxLine, line: func(line []byte) { got = append(got, string(line)) }}
	for _, w := range writes {
		_, _ = s.Write([]byte(w))
	}
	s.flush()
	return got
}

func TestSplitter(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	tests := []struct {
		name   string
		writes []string
		want   []string
	}{
		{"nothing", nil, nil},
		{"one line", []string{"a\n"}, []string{"a"}},
		{"partial last line", []string{"a\nb"}, []string{"a", "b"}},
		{"line in pieces", []string{"he", "llo\nwor", "ld\n"}, []string{"hello", "world"}},
		{"carriage returns", []string{"a\r\nb\rc\n"}, []string{"a", "b", "c"}},
		{"split carriage return", []string{"a\r", "\nb\n"}, []string{"a", "b"}},
		{"empty lines", []string{"\n\n \n\r\n"}, []string{" "}},
		{"exactly full", []string{long + "\n"}, []string{long}},
		{"too long", []string{long + "yz\n"}, []string{long, "yz"}},
		{"three times", []string{long + long, long + "\nend"}, []string{long, long, long, "end"}},
		{"between characters", []string{long[1:] + "é!\n"}, []string{long[1:], "é!"}},
		{"no characters", []string{long[2:] + "\xff\xff\xff\n"}, []string{long[2:] + "\xff\xff", "\xff"}},
		{"zero bytes", []string{"a\x00b\n"}, []string{"a\x00b"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, split(tt.writes...)); diff != "" {
			t.Errorf("%s (-want +got):\n%.300s", tt.name, diff)
		}
	}
}

func FuzzSplitter(f *testing.F) {
	const limit = 8
	f.Add([]byte("a\r\nb\rc\n\n"), 2)
	f.Add([]byte(strings.Repeat("é€", 9)), 7)
	f.Fuzz(func(t *testing.T, in []byte, step int) {
		var got []string
		s := splitter{max: limit, line: func(line []byte) { got = append(got, string(line)) }}
		for rest := in; len(rest) > 0; {
			n := min(max(step, 1), len(rest))
			_, _ = s.Write(rest[:n])
			rest = rest[n:]
		}
		s.flush()
		for _, line := range got {
			if len(line) == 0 || len(line) > limit || strings.ContainsAny(line, "\r\n") {
				t.Fatalf("got line of %d bytes %.40q", len(line), line)
			}
			if utf8.Valid(in) && !utf8.ValidString(line) {
				t.Fatalf("line cut inside a character: %.40q", line)
			}
		}
		want := bytes.Map(func(r rune) rune {
			if r == '\n' || r == '\r' {
				return -1
			}
			return r
		}, in)
		if utf8.Valid(in) && strings.Join(got, "") != string(want) {
			t.Fatalf("text was lost: %d bytes of %d", len(strings.Join(got, "")), len(want))
		}
	})
}
