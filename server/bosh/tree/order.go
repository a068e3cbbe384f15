package tree

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Order is the order in which a map of a document has its keys, which Value forgets. Nil is
// that of no map: the alphabetical one.
type Order struct {
	Keys   []string
	Within map[string]*Order // by the keys, or the indices of a list; values without maps have none
}

// OrderOf returns the order of the maps in a tree; nil if there are none.
func OrderOf(n *yaml.Node) *Order {
	o := &Order{}
	switch {
	case n == nil:
		return nil
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			o.add(n.Content[i].Value, OrderOf(n.Content[i+1]))
		}
		return o
	case n.Kind == yaml.SequenceNode:
		for i, c := range n.Content {
			if of := OrderOf(c); of != nil {
				o.within(strconv.Itoa(i), of)
			}
		}
	}
	if o.Within == nil {
		return nil
	}
	return o
}

func (o *Order) add(key string, of *Order) {
	o.Keys = append(o.Keys, key)
	if of != nil {
		o.within(key, of)
	}
}

func (o *Order) within(key string, of *Order) {
	if o.Within == nil {
		o.Within = map[string]*Order{}
	}
	o.Within[key] = of
}

// Key returns the order of the value of a key, or of the item of an index.
func (o *Order) Key(key string) *Order {
	if o == nil {
		return nil
	}
	return o.Within[key]
}

// At returns the order of what is at a dotted name.
func (o *Order) At(name string) *Order {
	for key := range strings.SplitSeq(name, ".") {
		o = o.Key(key)
	}
	return o
}

// Sorted returns the order in which the maps of a value are alphabetical, those within lists
// apart: these stay as they are.
func (o *Order) Sorted() *Order {
	if o == nil || o.Keys == nil {
		return o // of a list
	}
	sorted := &Order{}
	for key, of := range o.Within {
		if of = of.Sorted(); of != nil {
			sorted.within(key, of)
		}
	}
	return sorted
}

// Put adds a dotted name after those that are there, with the order of its value.
func (o *Order) Put(name string, of *Order) {
	key, rest, more := strings.Cut(name, ".")
	if !slices.Contains(o.Keys, key) {
		o.Keys = append(o.Keys, key)
	}
	if !more {
		o.within(key, of)
		return
	}
	if o.Within[key] == nil {
		o.within(key, &Order{})
	}
	o.Within[key].Put(rest, of)
}

// Sorted returns the keys of a map in the order; those that it does not name follow,
// alphabetically.
func Sorted[V any](m map[string]V, o *Order) []string {
	keys := make([]string, 0, len(m))
	if o != nil {
		for _, key := range o.Keys {
			if _, ok := m[key]; ok && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	named := len(keys)
	for key := range m {
		if !slices.Contains(keys[:named], key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys[named:])
	return keys
}
