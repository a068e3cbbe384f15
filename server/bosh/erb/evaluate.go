package erb

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cupola/server/bosh/link"
)

// errRuby says that only Ruby can tell what an expression is here.
var errRuby = errors.New("needs Ruby")

// evaluate returns what e is in c, errRuby, or the error that Ruby would give.
func (e *expression) evaluate(c *Context) (any, error) {
	properties := c.Properties
	if e.link != "" {
		l, ok := c.Links[e.link]
		if !ok {
			return nil, fmt.Errorf("Can't find link '%s'", e.link)
		}
		if e.property == "" {
			return linkPart(l, e.path)
		}
		properties = l.Properties
	}
	switch {
	case e.property != "":
		return e.look(properties)
	case e.path[0] == "spec":
		v, err := walk(c.Spec, e.path[1:])
		if hasMap(v) {
			err = errRuby // of which the spec makes objects
		}
		return v, err
	case e.path[0] == "index":
		return c.Spec["index"], nil
	}
	return c.Spec["name"], nil
}

func (e *expression) look(properties map[string]any) (any, error) {
	at := any(properties)
	for key := range strings.SplitSeq(e.property, ".") {
		m, ok := at.(map[string]any)
		if !ok {
			return nil, errRuby // a string or a list has [] too
		}
		if at = m[key]; at == nil {
			break
		}
	}
	switch {
	case at != nil:
		return at, nil
	case e.optional:
		return e.fallback, nil
	}
	return nil, fmt.Errorf("Can't find property '%s'", e.property)
}

// linkPart is the address of a link, or something of one of its instances.
func linkPart(l link.Link, path []string) (any, error) {
	if path[0] == "address" {
		return l.Address, nil
	}
	n, err := strconv.Atoi(path[1])
	if err != nil || n >= len(l.Instances) {
		return nil, errRuby
	}
	return walk(instanceValues(l.Instances[n]), path[2:])
}

// walk follows names and indices. What is not there may be a method of Ruby's.
func walk(at any, path []string) (any, error) {
	for _, step := range path {
		switch v := at.(type) {
		case map[string]any:
			next, ok := v[step]
			if !ok {
				return nil, errRuby
			}
			at = next
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n >= len(v) {
				return nil, errRuby
			}
			at = v[n]
		default:
			return nil, errRuby
		}
	}
	return at, nil
}

func hasMap(v any) bool {
	list, _ := v.([]any)
	_, is := v.(map[string]any)
	return is || slices.ContainsFunc(list, hasMap)
}
