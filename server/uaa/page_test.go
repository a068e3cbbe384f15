package uaa

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// TestPagesEscape holds that what users and clients say is text of a page, or the
// value of a field of a form, and nothing else; and that each place is filled.
func TestPagesEscape(t *testing.T) {
	const hostile = `"><script>alert('x')</script>&amp;{Secret}<b title="`
	p := page{Title: hostile, Fault: hostile, User: hostile, Secret: hostile, Next: hostile, Client: hostile, To: hostile, Scopes: []string{hostile, "a"}, Code: hostile}
	want := map[string]int{"login": 5, "home": 4, "passcode": 5, "approve": 9, "fault": 3} // places
	for name, places := range want {
		p.name = name
		text := string(p.html())
		if left := place().FindAllString(strings.ReplaceAll(text, html.EscapeString(hostile), ""), -1); left != nil {
			t.Errorf("%s: %q is not filled", name, left)
		}
		root, err := html.Parse(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for n := range root.Descendants() {
			if n.Type == html.ElementNode && n.Data == "script" || n.Type == html.CommentNode {
				t.Errorf("%s: got <%s>", name, n.Data)
			}
			if strings.HasPrefix(n.Data, hostile) {
				found++
			}
			if slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Val == hostile }) {
				found++
			}
		}
		if found != places {
			t.Errorf("%s: got the text whole in %d places; want %d\n%s", name, found, places, text)
		}
	}
}
