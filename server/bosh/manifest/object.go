package manifest

import (
	"fmt"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"cupola/runtime/pattern"
	"cupola/runtime/suggest"
	"cupola/server/bosh/tree"
)

// decoder gathers what is wrong while the nouns are read, and which keys are
// set.
type decoder struct {
	found Findings
	set   []setKey
	asked map[string]bool // the keys that a manifest may have; nil: not recorded
}

// setKey is a key of the manifest that the table of keys may have something
// to say of.
type setKey struct {
	At
	key   string // as in the table
	empty bool   // "", 0, false, [] or {}
	value string // when it is a scalar
}

// object reads the keys of one map. Whatever key is not asked for before done
// is unknown.
type object struct {
	At
	d     *decoder
	node  *yaml.Node
	key   string // in the table of keys: instance_groups[].jobs[]
	known []string
}

// get is the value of a key, nil when it is absent or null.
func (o *object) get(key string) *yaml.Node {
	o.known = append(o.known, key)
	if o.d.asked != nil {
		o.d.asked[o.tableKey(key)] = true
	}
	n := tree.Get(o.node, key)
	if tree.IsNull(n) {
		return nil
	}
	return n
}

func (o *object) has(key string) bool { return !tree.IsNull(tree.Get(o.node, key)) }

func (o *object) tableKey(key string) string {
	if o.key == "" {
		return key
	}
	return o.key + "." + key
}

// note records that a key is set, if the table has a text for it.
func (o *object) note(key string, n *yaml.Node) {
	table := o.tableKey(key)
	if k, ok := keyOf(table); ok && (k.Use == used || k.Use == accepted) {
		return
	}
	s := setKey{At: o.at(key, n), key: table, empty: empty(n)}
	if n.Kind == yaml.ScalarNode {
		s.value = n.Value
	}
	o.d.set = append(o.d.set, s)
}

// forgive takes the key that was noted last for empty.
func (d *decoder) forgive(key string) {
	if last := len(d.set) - 1; last >= 0 && d.set[last].key == key {
		d.set[last].empty = true
	}
}

func empty(n *yaml.Node) bool {
	switch n.Kind {
	case yaml.ScalarNode:
		return n.Value == "" || n.Value == "0" || n.Value == "false"
	default:
		return len(n.Content) == 0
	}
}

func (o *object) at(key string, n *yaml.Node) At {
	line := o.Line
	if n != nil && n.Line != 0 { // 0: of an ops file
		line = n.Line
	}
	return At{o.Path + "/" + tree.Escape(key), line}
}

// want returns a key's value if it has that kind. Otherwise it returns nil and
// reports a fault, unless the value comes from a variable.
func (o *object) want(key string, kind yaml.Kind, what string) *yaml.Node {
	n := o.get(key)
	if n == nil {
		return nil
	}
	o.note(key, n)
	if n.Kind == kind {
		return n
	}
	if !isVariable(n) {
		o.d.found.errorf(o.at(key, n), "expected %s, got %s", what, tree.Kind(n))
	}
	return nil
}

var variableText = pattern.Lazy(`\(\( ?!?[-/.\w\pL]+ ?\)\)`)

// isVariable reports whether a value is yet to be interpolated.
func isVariable(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && variableText().MatchString(n.Value)
}

// text is a scalar as it was written.
func (o *object) text(key string) string {
	if n := o.want(key, yaml.ScalarNode, "text"); n != nil {
		return n.Value
	}
	return ""
}

// scalar decodes a scalar into v and reports whether it was one of that kind.
func (o *object) scalar(key, what string, v any) bool {
	n := o.want(key, yaml.ScalarNode, what)
	if n == nil || isVariable(n) {
		return false
	}
	if n.Decode(v) != nil {
		o.d.found.errorf(o.at(key, n), "expected %s, got %q", what, cut(n.Value, 60))
		return false
	}
	return true
}

// number is a whole number of at least 0.
func (o *object) number(key string) int {
	if n := o.maybe(key); n != nil {
		return *n
	}
	return 0
}

// maybe is a number that may not have been given.
func (o *object) maybe(key string) *int {
	var v int
	if !o.scalar(key, "a number", &v) {
		return nil
	}
	if v < 0 || v > 1<<40 {
		o.d.found.errorf(o.at(key, tree.Get(o.node, key)), "%d is out of range", v)
		return nil
	}
	return &v
}

func (o *object) float(key string) (v float64) {
	if o.scalar(key, "a number", &v) && !(v >= 0 && v <= 1<<20) {
		o.d.found.errorf(o.at(key, tree.Get(o.node, key)), "%v is out of range", v)
		return 0
	}
	return v
}

func (o *object) boolean(key string) bool {
	v := o.switched(key)
	return v != nil && *v
}

// switched is a boolean that may not have been given.
func (o *object) switched(key string) *bool {
	var v bool
	if !o.scalar(key, "true or false", &v) {
		return nil
	}
	return &v
}

// list is the items of a list.
func (o *object) list(key string) []*yaml.Node {
	if n := o.want(key, yaml.SequenceNode, "a list"); n != nil {
		return n.Content
	}
	return nil
}

// texts is a list of scalars.
func (o *object) texts(key string) (all []string) {
	for i, n := range o.list(key) {
		if n.Kind != yaml.ScalarNode {
			o.d.found.errorf(At{o.at(key, nil).Path + "/" + strconv.Itoa(i), n.Line}, "expected text, got %s", tree.Kind(n))
			continue
		}
		all = append(all, n.Value)
	}
	return all
}

// strings is a map of texts.
func (o *object) strings(key string) map[string]string {
	n := o.want(key, yaml.MappingNode, "a map")
	if n == nil {
		return nil
	}
	all := make(map[string]string, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i].Value, n.Content[i+1]
		if v.Kind != yaml.ScalarNode {
			o.d.found.errorf(At{o.at(key, nil).Path + "/" + tree.Escape(k), v.Line}, "expected text, got %s", tree.Kind(v))
			continue
		}
		all[k] = v.Value
	}
	return all
}

// values is a map of whatever it holds.
func (o *object) values(key string) map[string]any {
	if n := o.want(key, yaml.MappingNode, "a map"); n != nil {
		return tree.Value(n).(map[string]any)
	}
	return nil
}

// sent is values as the director reads them.
func (o *object) sent(key string) map[string]any {
	m, _ := tree.Sent(o.values(key)).(map[string]any)
	return m
}

// any is whatever the key holds.
func (o *object) any(key string) any {
	n := o.get(key)
	if n == nil {
		return nil
	}
	o.note(key, n)
	return tree.Value(n)
}

// anys is a list of whatever it holds.
func (o *object) anys(key string) (all []any) {
	for _, n := range o.list(key) {
		all = append(all, tree.Value(n))
	}
	return all
}

// in is the map of a key, nil when it is absent. Its caller calls done.
func (o *object) in(key string) *object {
	if n := o.want(key, yaml.MappingNode, "a map"); n != nil {
		return &object{At: o.at(key, n), d: o.d, node: n, key: o.tableKey(key)}
	}
	return nil
}

// entries are the maps of a map by names that users choose.
func (o *object) entries(key string, use func(name string, n *yaml.Node, entry *object)) {
	n := o.want(key, yaml.MappingNode, "a map")
	if n == nil {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, v := n.Content[i].Value, n.Content[i+1]
		at := At{o.at(key, nil).Path + "/" + tree.Escape(name), v.Line}
		use(name, v, &object{At: at, d: o.d, node: v, key: o.tableKey(key) + ".*"})
	}
}

// each reads the maps of a list. In paths an item has the value of its key id, if that
// is plain text, or else its place.
func (o *object) each(key, id string, use func(item *object)) {
	n := o.get(key)
	if n == nil {
		return
	}
	o.note(key, n)
	items := n.Content
	switch {
	case n.Kind == yaml.MappingNode && tree.Get(n, id) != nil:
		o.d.found.errorf(o.at(key, n), "expected a list, got a map; begin its entry with \"- %s:\"", id)
		items = []*yaml.Node{n}
	case n.Kind != yaml.SequenceNode:
		o.want(key, yaml.SequenceNode, "a list")
		return
	}
	base := o.at(key, nil).Path + "/"
	for i, item := range items {
		at := At{base + tree.Segment(item, id, i), item.Line}
		if item.Kind != yaml.MappingNode {
			o.d.found.errorf(at, "expected a map, got %s", tree.Kind(item))
			continue
		}
		each := &object{At: at, d: o.d, node: item, key: o.tableKey(key) + "[]"}
		use(each)
		each.done()
	}
}

var plainKey = pattern.Lazy(`^[A-Za-z0-9_.-]+$`)

// done reports unknown keys. One that does not resemble a known key is an
// error, since everything below it is lost.
func (o *object) done() {
	if o == nil || o.node.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(o.node.Content); i += 2 {
		key := o.node.Content[i]
		if slices.Contains(o.known, key.Value) {
			continue
		}
		if len(o.d.found) > maxFindings {
			return
		}
		f := Finding{Level: Warning, Path: o.Path, Line: key.Line, unknown: true,
			What: fmt.Sprintf("unknown key %q%s", cut(key.Value, 100), suggest.Hint(key.Value, o.known))}
		if f.Path == "" {
			f.Path = "/"
		}
		if !plainKey().MatchString(key.Value) {
			f.Level = Error
		}
		o.d.found.add(f)
	}
}
