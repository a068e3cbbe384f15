package servicefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"cupola/runtime/pattern"
	"cupola/server/manifest"

	"go.yaml.in/yaml/v3"
)

// Size is a number of bytes, written with a unit, like 512M.
type Size int64

// UnmarshalYAML reads a size.
func (s *Size) UnmarshalYAML(n *yaml.Node) error {
	bytes, ok := manifest.ParseSize(n.Value)
	if !ok || bytes < 16<<20 || bytes > 1<<50 {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: invalid size %q: give 16M or more, like 512M or 4G", n.Line, short(n.Value))}}
	}
	*s = Size(bytes)
	return nil
}

// short cuts a text that an error quotes.
func short(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// Parse reads the content of a file. It lists all that is wrong, each with the file's name, the line and
// the field.
func Parse(name string, text []byte) (*File, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s: larger than %d KB", name, maxFile>>10)
	}
	f := &File{}
	c := &checker{file: f, name: name}
	if err := c.decode(text); err != nil {
		return nil, err
	}
	if c.check(); len(c.faults) > 0 {
		return nil, errors.Join(c.faults...)
	}
	return f, nil
}

// checker checks one file.
type checker struct {
	file   *File
	name   string
	root   *yaml.Node // the mapping
	faults []error
}

// decode reads the one document of a file into its fields.
func (c *checker) decode(text []byte) error {
	if !validText(string(text)) {
		return fmt.Errorf("%s: not a text in UTF-8", c.name)
	}
	var document yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&document); err == io.EOF || err == nil && len(document.Content) == 0 {
		return fmt.Errorf("%s: the file is empty", c.name)
	} else if err != nil {
		return c.yamlFault(err)
	}
	if c.root = document.Content[0]; c.root.Kind != yaml.MappingNode {
		return fmt.Errorf("%s:%d: give fields, like 'name: NAME'", c.name, c.root.Line)
	}
	if err := d.Decode(new(yaml.Node)); err != io.EOF {
		return fmt.Errorf("%s: give one document; a second service needs another file", c.name)
	}
	if line := aliasLine(c.root, 0); line > 0 {
		return fmt.Errorf("%s:%d: no aliases, no tags, and at most %d levels are accepted", c.name, line, maxDepth)
	}
	strict := yaml.NewDecoder(bytes.NewReader(text))
	strict.KnownFields(true)
	if err := strict.Decode(c.file); err != nil {
		return c.yamlFault(err)
	}
	return nil
}

// maxDepth bounds how deep values are nested.
const maxDepth = 10

// aliasLine is the line of the first node that is an alias, has its own tag, or is too deep; 0 for none.
func aliasLine(n *yaml.Node, depth int) int {
	if n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 || depth > maxDepth {
		return max(n.Line, 1)
	}
	for _, child := range n.Content {
		if line := aliasLine(child, depth+1); line > 0 {
			return line
		}
	}
	return 0
}

var (
	// goType is what the decoder calls a place by.
	goType = pattern.Lazy(` (?:into|in type) [\w.\[\]*{} ]+`)
	// unknownField is what it says of a field that there is not.
	unknownField = pattern.Lazy(`field (.*) not found`)
	atLine       = pattern.Lazy(`^(?:yaml: )?line (\d+): `)
)

// yamlFault is an error of the decoder, with the file's name and without types of this program.
func (c *checker) yamlFault(err error) error {
	lines := []string{err.Error()}
	if fault, ok := errors.AsType[*yaml.TypeError](err); ok {
		lines = fault.Errors
	}
	var all []error
	for _, line := range lines {
		line = unknownField().ReplaceAllString(goType().ReplaceAllString(line, ""), `unknown field "$1"`)
		if m := atLine().FindStringSubmatch(line); m != nil {
			all = append(all, fmt.Errorf("%s:%s: %s", c.name, m[1], line[len(m[0]):]))
		} else {
			all = append(all, fmt.Errorf("%s: %s", c.name, strings.TrimPrefix(line, "yaml: ")))
		}
	}
	return errors.Join(all...)
}

// fault notes that a field is wrong. The field is a path of keys, and of numbers of items from 0.
func (c *checker) fault(field, format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf("%s:%d: %s: %s", c.name, c.line(field), field, fmt.Sprintf(format, args...)))
}

// line is where a field is, or what is around it.
func (c *checker) line(field string) int {
	at, line := c.root, 1
	for part := range strings.SplitSeq(field, ".") {
		next := childOf(at, part)
		if next == nil {
			break
		}
		at, line = next, next.Line
	}
	return line
}

// childOf is the value of a key, or an item.
func childOf(n *yaml.Node, part string) *yaml.Node {
	if n.Kind == yaml.SequenceNode {
		if i, err := strconv.Atoi(part); err == nil && i < len(n.Content) {
			return n.Content[i]
		}
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == part {
			return n.Content[i+1]
		}
	}
	return nil
}
