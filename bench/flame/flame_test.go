package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

const script = `cupola
	ffffffff81000010 tcp_sendmsg
	          4711a0 internal/runtime/syscall.Syscall6
	          b0a1c0 cupola/server/router.(*link).ask

cupola
	          471300 
	          471200 
	          b0a1c0 cupola/server/router.(*link).ask

nginx
	          12345 ngx_http_process

`

// TestSamplesBecomeBoxes has the samples of a program as boxes, those of others left out, and names escaped.
func TestSamplesBecomeBoxes(t *testing.T) {
	root := &frame{}
	if err := root.read(strings.NewReader(script), []string{"cupola"}); err != nil {
		t.Fatal(err)
	}
	ask := root.calls[0].calls[0]
	if root.samples != 2 || len(root.calls) != 1 || root.calls[0].name != "cupola" || ask.samples != 2 || len(ask.calls) != 2 || ask.calls[1].name != unknown || len(ask.calls[1].calls) > 0 || !ask.calls[0].calls[0].kernel {
		t.Errorf("got %+v", ask)
	}
	got := string(svg(root, "a < b"))
	for d := xml.NewDecoder(strings.NewReader(got)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, got)
		}
	}
	for _, want := range []string{
		">a &lt; b</text>", ">2 samples;",
		`<title>cupola/server/router.(*link).ask: 100.0 %</title><rect x="0.0" y="72" width="1199.5" height="15" fill="#f4a261"/><text x="2.0" y="83">router.(*link).ask</text>`,
		`<title>tcp_sendmsg: 50.0 %</title>`, `fill="#9cc3e6"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %s in it", got, want)
		}
	}
}
