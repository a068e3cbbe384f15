package ops

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/server/bosh/tree"
)

// walk is one way along a path.
type walk struct {
	tokens   []token
	steps    *int
	optional absence
}

// absence is what happens where something optional is not there.
type absence int

const (
	ends     absence = iota // the walk ends, with errAbsent
	supposed                // the walk goes on as if it were there, and empty
	created                 // the same, and it becomes a part of the document
)

// boshError returns an error with the bosh CLI's message.
func boshError(format string, args ...any) error { return fmt.Errorf(format, args...) }

// missing is the error of a key or an index that is not there.
type missing struct {
	error
	path string
}

// errAbsent ends a walk at something optional that is not there.
var errAbsent = errors.New("it is not there")

// parent returns the node in which to look for the last token.
func (w *walk) parent(doc *yaml.Node) (n *yaml.Node, err error) {
	n = doc
	for i := range len(w.tokens) - 1 {
		if n, err = w.descend(n, i); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (w *walk) path(i int) string { return pathText(w.tokens[:i+1]) }

// descend is what token i leads to from n.
func (w *walk) descend(n *yaml.Node, i int) (*yaml.Node, error) {
	switch t := w.tokens[i]; t.kind {
	case key:
		at, err := w.key(n, i)
		if at >= 0 || err != nil {
			return child(n, at), err
		}
		return w.vacancy(n, i)
	case after:
		return nil, boshError("Expected after last index token to be last in path '%s'", w.path(len(w.tokens)-1))
	}
	at, there, err := w.item(n, i)
	switch {
	case err != nil:
		return nil, err
	case !there:
		return w.vacancy(n, i)
	}
	if at, err = w.concrete(n, i, at); err != nil {
		return nil, err
	}
	return n.Content[at], nil
}

func child(n *yaml.Node, at int) *yaml.Node {
	if at < 0 {
		return nil
	}
	return n.Content[at+1]
}

// key is the place of a key in a map, -1 when it is not there and may miss.
func (w *walk) key(n *yaml.Node, i int) (int, error) {
	if n.Kind != yaml.MappingNode {
		return -1, mismatch("a map", w.path(i), n)
	}
	if err := w.spend(len(n.Content)); err != nil {
		return -1, err
	}
	for at := 0; at+1 < len(n.Content); at += 2 {
		if n.Content[at].Value == w.tokens[i].key {
			return at, nil
		}
	}
	if !w.tokens[i].optional {
		return -1, missing{boshError("Expected to find a map key '%s' for path '%s' (%s)", w.tokens[i].key, w.path(i), siblings(n)), w.path(i)}
	}
	return -1, nil
}

func siblings(n *yaml.Node) string {
	if len(n.Content) == 0 {
		return "found no other map keys"
	}
	const most = 200
	var keys []string
	for at := 0; at+1 < len(n.Content) && len(keys) < most; at += 2 {
		keys = append(keys, n.Content[at].Value)
	}
	slices.Sort(keys)
	return "found map keys: '" + strings.Join(keys, "', '") + "'"
}

// item is the place in a list that a token names, without its modifiers; an
// index below 0 is counted from the end. Nothing is there when no item matches
// and none has to.
func (w *walk) item(n *yaml.Node, i int) (at int, there bool, err error) {
	if n.Kind != yaml.SequenceNode {
		return 0, false, mismatch("an array", w.path(i), n)
	}
	t := w.tokens[i]
	if t.kind == index {
		return t.index, true, nil
	}
	if err := w.spend(len(n.Content)); err != nil {
		return 0, false, err
	}
	found := 0
	for j, c := range n.Content {
		if v := tree.Get(c, t.key); v != nil && v.Kind == yaml.ScalarNode && tree.Value(v) == t.value {
			found, at = found+1, j
		}
	}
	if found == 1 || found == 0 && t.optional {
		return at, found == 1, nil
	}
	return 0, false, boshError("Expected to find exactly one matching array item for path '%s' but found %d", w.path(i), found)
}

// concrete moves a place as the token's modifiers say, and counts it from the
// start. None of them may be for inserting.
func (w *walk) concrete(n *yaml.Node, i, at int) (int, error) {
	return w.moved(n, i, at, w.tokens[i].modifiers)
}

// moved is concrete with other modifiers.
func (w *walk) moved(n *yaml.Node, i, at int, modifiers []string) (int, error) {
	for _, m := range modifiers {
		switch m {
		case "prev":
			at--
		case "next":
			at++
		default:
			return 0, boshError("Expected to find one of the following modifiers: 'prev', 'next', but found modifier '%s'", goModifier(m))
		}
	}
	length := len(n.Content)
	if at >= length || at < -length {
		return 0, missing{boshError("Expected to find array index '%d' but found array of length '%d' for path '%s'", at, length, w.path(i)), w.path(i)}
	}
	if at < 0 {
		at += length
	}
	return at, nil
}

// vacancy returns what takes the place of something optional that n does not
// have: a value in which the next token can be looked up.
func (w *walk) vacancy(n *yaml.Node, i int) (*yaml.Node, error) {
	if w.optional == ends {
		return nil, errAbsent
	}
	made, err := w.empty(i)
	if err != nil || w.optional == supposed {
		return made, err
	}
	if w.tokens[i].kind == key {
		n.Content = append(n.Content, tree.Text(w.tokens[i].key))
	}
	n.Content = append(n.Content, made)
	return made, nil
}

// empty is the value of token i where there is none: an item that matches it, or
// what the next token asks for.
func (w *walk) empty(i int) (*yaml.Node, error) {
	t := w.tokens[i]
	if t.kind == matching {
		return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{tree.Text(t.key), tree.Text(t.value)}}, nil
	}
	if i+1 == len(w.tokens) {
		return tree.Null(), nil
	}
	switch next := w.tokens[i+1].kind; {
	case next == key:
		return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}, nil
	case next == matching || next == after && w.optional == created:
		return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}, nil
	case w.optional == created:
		return nil, boshError("Expected to find key, matching index or after last index token at path '%s'", w.path(i+1))
	}
	return nil, boshError("Expected to find key or matching index token at path '%s'", w.path(i+1))
}

func (w *walk) spend(n int) error {
	if *w.steps += n + 1; *w.steps > maxSteps {
		return errors.New("the operations look at too many items")
	}
	return nil
}

// mismatch is the error of a path that leads into something else than it says.
func mismatch(want, path string, n *yaml.Node) error {
	return boshError("Expected to find %s at path '%s' but found '%s'", want, path, GoType(n))
}

// goModifier is what the bosh CLI calls a modifier.
func goModifier(m string) string { return "patch." + title(m) + "Modifier" }

// GoType is what the bosh CLI calls the type of a value.
func GoType(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "map[interface {}]interface {}"
	case yaml.SequenceNode:
		return "[]interface {}"
	}
	return fmt.Sprintf("%T", tree.Value(n))
}
