package interpolate

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/server/bosh/tree"
)

// Reference is a place where a variable is asked for.
type Reference struct {
	Name   string   // of the variable
	Fields []string // that are asked of it
	Path   string   // as ops files write it
	Line   int
}

// referencesIn is the references of a text.
func referencesIn(text string) (all []Reference) {
	if !strings.Contains(text, "((") {
		return nil
	}
	for _, m := range reference().FindAllStringSubmatch(text, -1) {
		name, fields := split(m[1])
		all = append(all, Reference{Name: name, Fields: fields})
	}
	return all
}

// References are those of a tree, in its order: of its values, and of its keys.
// In paths, an item of a list has its name, if it has one.
func References(n *yaml.Node) []Reference {
	var all []Reference
	walk(n, "", &all)
	return all
}

func walk(n *yaml.Node, path string, all *[]Reference) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			here := path + "/" + tree.Escape(n.Content[i].Value)
			walk(n.Content[i], here, all)
			walk(n.Content[i+1], here, all)
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			walk(c, path+"/"+tree.Segment(c, "name", i), all)
		}
	default:
		for _, r := range referencesIn(n.Value) {
			r.Path, r.Line = path, n.Line
			*all = append(*all, r)
		}
	}
}
