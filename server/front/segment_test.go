package front

import (
	"slices"
	"testing"
)

func TestParseSegmentRouter(t *testing.T) {
	for text, want := range map[string]struct {
		segments []string
		shared   bool
		address  string
	}{
		"red=127.0.0.1:8081":    {[]string{"red"}, false, "127.0.0.1:8081"},
		"red+blue=:8081":        {[]string{"red", "blue"}, false, ":8081"},
		"Shared+red=[::1]:8081": {[]string{"red"}, true, "[::1]:8081"},
		"a=b=0.0.0.0:80":        {[]string{"a=b"}, false, "0.0.0.0:80"},
	} {
		got, err := ParseSegmentRouter(text)
		if err != nil || !slices.Equal(got.Shard.Segments, want.segments) || got.Shard.Shared != want.shared || got.Address != want.address {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "red", "=127.0.0.1:80", "red+=127.0.0.1:80", "red=127.0.0.1", "red="} {
		if got, err := ParseSegmentRouter(bad); err == nil {
			t.Errorf("%q: got %+v; want an error", bad, got)
		}
	}
	if s, err := ParseShard(nil); s != nil || err != nil {
		t.Errorf("no names: got %v, %v; want all", s, err)
	}
}
