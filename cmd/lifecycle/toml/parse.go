package toml

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// parse reads a document.
func parse(text []byte) (Table, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("it is not valid UTF-8")
	}
	p := &parser{text: string(text), root: Table{}, closed: map[string]bool{}, sealed: map[string]bool{}}
	if err := p.document(); err != nil {
		line := 1 + strings.Count(p.text[:min(p.at, len(p.text))], "\n")
		return nil, fmt.Errorf("line %d: %w", line, err)
	}
	return p.root, nil
}

// parser reads a document from byte at on.
type parser struct {
	text   string
	at     int
	depth  int
	root   Table
	closed map[string]bool // tables that a header defined, by their path
	sealed map[string]bool // inline tables and arrays, to which nothing can be added
}

func (p *parser) document() error {
	table, path := p.root, ""
	for {
		p.blank()
		switch {
		case p.at == len(p.text):
			return nil
		case p.peek() == '[':
			var err error
			if table, path, err = p.header(); err != nil {
				return err
			}
		default:
			if err := p.pair(table, path); err != nil {
				return err
			}
		}
		if err := p.lineEnd(); err != nil {
			return err
		}
	}
}

// header reads a [table] or an [[array of tables]], and returns the table that the
// next pairs belong to.
func (p *parser) header() (Table, string, error) {
	list := strings.HasPrefix(p.text[p.at:], "[[")
	p.at++
	if list {
		p.at++
	}
	keys, err := p.keys()
	if err != nil {
		return nil, "", err
	}
	end := "]"
	if list {
		end = "]]"
	}
	if !strings.HasPrefix(p.text[p.at:], end) {
		return nil, "", fmt.Errorf("%q is missing after the name of a table", end)
	}
	p.at += len(end)
	parent, path, err := p.descend(keys[:len(keys)-1])
	if err != nil {
		return nil, "", err
	}
	name := keys[len(keys)-1]
	if path += "." + name; p.sealed[path] {
		return nil, "", fmt.Errorf("nothing can be added to %s", path[1:])
	}
	if list {
		return p.item(parent, name, path)
	}
	return p.table(parent, name, path)
}

// item appends a table to an array of tables.
func (p *parser) item(parent Table, name, path string) (Table, string, error) {
	all, ok := parent[name].([]any)
	if parent[name] != nil && !ok {
		return nil, "", fmt.Errorf("%s is not an array of tables", path[1:])
	}
	item := Table{}
	parent[name] = append(all, item)
	return item, fmt.Sprintf("%s[%d]", path, len(all)), nil
}

// table defines a table, once.
func (p *parser) table(parent Table, name, path string) (Table, string, error) {
	if p.closed[path] {
		return nil, "", fmt.Errorf("the table %s is defined twice", path[1:])
	}
	p.closed[path] = true
	if parent[name] == nil {
		parent[name] = Table{}
	}
	t, ok := parent[name].(Table)
	if !ok {
		return nil, "", fmt.Errorf("%s is not a table", path[1:])
	}
	return t, path, nil
}

// descend finds the table of dotted keys, and makes what is missing. Of an array of
// tables it is the last one.
func (p *parser) descend(keys []string) (t Table, path string, err error) {
	t = p.root
	for _, key := range keys {
		if path += "." + key; p.sealed[path] {
			return nil, "", fmt.Errorf("nothing can be added to %s", path[1:])
		}
		switch v := t[key].(type) {
		case nil:
			next := Table{}
			t[key] = next
			t = next
		case Table:
			t = v
		case []any:
			var ok bool
			if len(v) == 0 {
				return nil, "", fmt.Errorf("%s is not a table", path[1:])
			}
			if t, ok = v[len(v)-1].(Table); !ok {
				return nil, "", fmt.Errorf("%s is not a table", path[1:])
			}
			path = fmt.Sprintf("%s[%d]", path, len(v)-1)
		default:
			return nil, "", fmt.Errorf("%s is not a table", path[1:])
		}
	}
	return t, path, nil
}

// pair reads key = value.
func (p *parser) pair(t Table, path string) error {
	keys, err := p.keys()
	if err != nil {
		return err
	}
	if p.peek() != '=' {
		return fmt.Errorf("\"=\" is missing after the key %s", strings.Join(keys, "."))
	}
	p.at++
	p.spaces()
	parent := t
	for i, key := range keys[:len(keys)-1] {
		path += "." + key
		if p.closed[path] || p.sealed[path] {
			return fmt.Errorf("the table %s is defined already", strings.Join(keys[:i+1], "."))
		}
		next, ok := parent[key].(Table)
		if parent[key] == nil {
			next, ok = Table{}, true
			parent[key] = next
		}
		if !ok {
			return fmt.Errorf("%s is not a table", strings.Join(keys[:i+1], "."))
		}
		parent = next
	}
	name := keys[len(keys)-1]
	if _, ok := parent[name]; ok {
		return fmt.Errorf("the key %s is defined twice", strings.Join(keys, "."))
	}
	v, err := p.value()
	if err != nil {
		return err
	}
	parent[name] = v
	switch v.(type) {
	case Table, []any:
		p.sealed[path+"."+name] = true
	}
	return nil
}

// keys reads a dotted key.
func (p *parser) keys() ([]string, error) {
	var keys []string
	for {
		p.spaces()
		key, err := p.key()
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
		if len(keys) > maxDepth {
			return nil, fmt.Errorf("a key has more than %d parts", maxDepth)
		}
		p.spaces()
		if p.peek() != '.' {
			return keys, nil
		}
		p.at++
	}
}

func (p *parser) key() (string, error) {
	switch p.peek() {
	case '"':
		return p.basic()
	case '\'':
		return p.literal()
	}
	start := p.at
	for isBare(p.peek()) {
		p.at++
	}
	if p.at == start {
		return "", fmt.Errorf("a key is missing at %q", p.rest())
	}
	return p.text[start:p.at], nil
}

func isBare(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// peek is the next byte; 0 at the end, where no document has one.
func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

// rest is the beginning of what was not read yet, for errors.
func (p *parser) rest() string {
	line, _, _ := strings.Cut(p.text[p.at:], "\n")
	return line[:min(len(line), 20)]
}

func (p *parser) spaces() {
	for c := p.peek(); c == ' ' || c == '\t'; c = p.peek() {
		p.at++
	}
}

// blank skips spaces, line ends and comments.
func (p *parser) blank() {
	for {
		switch p.peek() {
		case ' ', '\t', '\n', '\r':
			p.at++
		case '#':
			p.comment()
		default:
			return
		}
	}
}

func (p *parser) comment() {
	for c := p.peek(); c != '\n' && c != 0; c = p.peek() {
		p.at++
	}
}

func (p *parser) lineEnd() error {
	p.spaces()
	if p.peek() == '#' {
		p.comment()
	}
	if c := p.peek(); c != '\n' && c != '\r' && p.at < len(p.text) {
		return fmt.Errorf("%q follows a value or a table's name", p.rest())
	}
	return nil
}
