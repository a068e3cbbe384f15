package ops

import (
	"errors"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"cupola/server/bosh/tree"
)

// replace puts value where the path leads, and makes the way there where it is
// optional.
func (w *walk) replace(doc, value *yaml.Node) (*yaml.Node, error) {
	if len(w.tokens) == 0 {
		return value, nil
	}
	w.optional = created
	n, err := w.parent(doc)
	if err != nil {
		return nil, err
	}
	last := len(w.tokens) - 1
	t := w.tokens[last]
	switch t.kind {
	case after:
		if n.Kind != yaml.SequenceNode {
			return nil, mismatch("an array", w.path(last), n)
		}
		n.Content = append(n.Content, value)
		return doc, nil
	case key:
		at, err := w.key(n, last)
		switch {
		case err != nil:
			return nil, err
		case at < 0:
			n.Content = append(n.Content, tree.Text(t.key), value)
		default:
			n.Content[at+1] = value
		}
		return doc, nil
	}
	at, there, err := w.item(n, last)
	switch {
	case err != nil:
		return nil, err
	case !there:
		n.Content = append(n.Content, value)
		return doc, nil
	}
	return doc, w.insert(n, at, value)
}

// insert replaces an item of a list, or puts value before or after it.
func (w *walk) insert(n *yaml.Node, at int, value *yaml.Node) error {
	last := len(w.tokens) - 1
	moves, way := w.tokens[last].modifiers, ""
	for i, m := range moves {
		if m != "before" && m != "after" {
			continue
		}
		if i+1 < len(moves) {
			return boshError("Expected to not find any modifiers after '%s' modifier, but found modifier '%s'", m, goModifier(moves[i+1]))
		}
		moves, way = moves[:i], m
	}
	at, err := w.moved(n, last, at, moves)
	if err != nil {
		return err
	}
	switch way {
	case "before":
		n.Content = slices.Insert(n.Content, at, value)
	case "after":
		n.Content = slices.Insert(n.Content, at+1, value)
	default:
		n.Content[at] = value
	}
	return nil
}

// remove deletes the value at the path; an optional one may be missing.
func (w *walk) remove(doc *yaml.Node) error {
	if len(w.tokens) == 0 {
		return boshError("Cannot remove entire document")
	}
	n, err := w.parent(doc)
	if errors.Is(err, errAbsent) {
		return nil
	}
	if err != nil {
		return err
	}
	last := len(w.tokens) - 1
	switch w.tokens[last].kind {
	case after:
		return boshError("Expected to not find token 'patch.AfterLastIndexToken' at path '%s'", w.path(last))
	case key:
		at, err := w.key(n, last)
		if at >= 0 {
			n.Content = slices.Delete(n.Content, at, at+2)
		}
		return err
	}
	at, there, err := w.item(n, last)
	if !there || err != nil {
		return err
	}
	if at, err = w.concrete(n, last, at); err == nil {
		n.Content = slices.Delete(n.Content, at, at+1)
	}
	return err
}

// find returns what the path leads to; of an optional key that is not there, a null.
func (w *walk) find(doc *yaml.Node) (n *yaml.Node, err error) {
	w.optional = supposed
	n = doc
	for i, t := range w.tokens {
		if t.kind == after {
			return nil, boshError("Expected not to find after last index token in path '%s' (not supported in find operations)", pathText(w.tokens))
		}
		if n, err = w.descend(n, i); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// test is an error unless the document is as the operation says.
func (w *walk) test(doc *yaml.Node, op Op) error {
	n, err := w.find(doc)
	switch gone, isGone := errors.AsType[missing](err); {
	case op.Absent && isGone && gone.path == pathText(w.tokens):
		return nil
	case op.Absent && err == nil:
		return boshError("Expected to not find '%s'", pathText(w.tokens))
	case err != nil:
		return err
	case !reflect.DeepEqual(tree.Value(n), tree.Value(op.Value)):
		return boshError("Found value does not match expected value")
	}
	return nil
}
