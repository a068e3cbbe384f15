package tree

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// escapes are those of paths in ops files: what has a meaning there.
var escapes = []string{"~", "~0", "/", "~1", "?", "~2", "=", "~3", ":", "~7"}

// Escape writes a key as a token of a path.
func Escape(key string) string { return strings.NewReplacer(escapes...).Replace(key) }

// Unescape is the key that a token of a path was written for.
func Unescape(token string) string {
	back := make([]string, 0, len(escapes))
	for i := 0; i < len(escapes); i += 2 {
		back = append(back, escapes[i+1], escapes[i])
	}
	return strings.NewReplacer(back...).Replace(token)
}

// maxSegment bounds an item's text in a path.
const maxSegment = 100

// Segment is the token of a list's item: its value of the key id, if it has
// one, like name=api; otherwise its place.
func Segment(item *yaml.Node, id string, i int) string {
	if n := Get(item, id); n != nil && n.Kind == yaml.ScalarNode && n.Value != "" {
		return id + "=" + Escape(n.Value[:min(len(n.Value), maxSegment)])
	}
	return strconv.Itoa(i)
}
