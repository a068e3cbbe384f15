package cli

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// Command is a command of a program, or the program itself.
type Command struct {
	Name     string
	Aliases  []string
	Help     string // one sentence
	Detail   string // paragraphs that its own help has besides
	Group    string // heading in the help of the command above
	Hidden   bool
	Flags    []*Flag // its own
	Args     []*Arg
	Commands []*Command
	Parent   *Command // nil for the program

	usual    *Command    // of Commands: runs if none is named
	target   any         // pointer to the struct
	validate []validated // of it, and of what is embedded by name
}

// detailed is a command that says more about itself.
type detailed interface{ Help() string }

// build makes the command of a struct.
func build(name string, of reflect.Value, o Options) (*Command, error) {
	c := &Command{Name: name, target: of.Addr().Interface()}
	if d, ok := c.target.(detailed); ok {
		c.Detail = d.Help()
	}
	c.addValidated(of)
	if err := c.addFields(of, "", o); err != nil {
		return nil, err
	}
	return c, c.check()
}

// validated is a struct that checks its values.
type validated interface{ Validate() error }

func (c *Command) addValidated(of reflect.Value) {
	if v, ok := of.Addr().Interface().(validated); ok {
		c.validate = append(c.validate, v)
	}
}

// addFields adds what the fields of a struct stand for.
func (c *Command) addFields(of reflect.Value, prefix string, o Options) error {
	for i := range of.NumField() {
		f, tag := of.Type().Field(i), of.Type().Field(i).Tag
		_, embed := tag.Lookup("embed")
		_, command := tag.Lookup("cmd")
		_, arg := tag.Lookup("arg")
		name := tag.Get("name")
		if name == "" {
			name = dashed(f.Name)
		}
		var err error
		switch {
		case tag.Get("flag") == "-" || !f.IsExported() && !f.Anonymous:
		case embed:
			c.addValidated(of.Field(i))
			err = c.addFields(of.Field(i), prefix+tag.Get("prefix"), o)
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			err = c.addFields(of.Field(i), prefix+tag.Get("prefix"), o)
		case command:
			err = c.addCommand(name, of.Field(i), tag, o)
		case arg:
			c.Args = append(c.Args, newArg(name, of.Field(i), tag, o))
		default:
			c.Flags = append(c.Flags, newFlag(prefix+name, of.Field(i), tag, o))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Command) addCommand(name string, of reflect.Value, tag reflect.StructTag, o Options) error {
	child, err := build(name, of, o)
	if err != nil {
		return fmt.Errorf("%s %w", name, err)
	}
	child.Parent, child.Help, child.Aliases, child.Group = c, tag.Get("help"), words(tag.Get("aliases")), tag.Get("group")
	_, child.Hidden = tag.Lookup("hidden")
	if tag.Get("default") == "withargs" {
		c.usual = child
	}
	c.Commands = append(c.Commands, child)
	return nil
}

// check finds mistakes in the structs themselves.
func (c *Command) check() error {
	if len(c.Commands) > 0 && len(c.Args) > 0 {
		return fmt.Errorf("has both commands and arguments")
	}
	for i, a := range c.Args {
		if i > 0 && (a.Required && !c.Args[i-1].Required || c.Args[i-1].isList()) {
			return fmt.Errorf("has the argument %s after one that may take it", a.Name)
		}
	}
	return nil
}

// Path is the names of the command and of all above it but the program's.
func (c *Command) Path() []string {
	if c.Parent == nil {
		return nil
	}
	return append(c.Parent.Path(), c.Name)
}

// AllFlags are those of the program, of all commands on the way to this one, and
// its own.
func (c *Command) AllFlags() (all []*Flag) {
	for _, above := range c.line() {
		all = append(all, above.Flags...)
	}
	return all
}

// line is the program and all commands on the way to this one, which is the last.
func (c *Command) line() []*Command {
	if c.Parent == nil {
		return []*Command{c}
	}
	return append(c.Parent.line(), c)
}

// usualFlags are those of the command that runs if none below c is named.
func (c *Command) usualFlags() (all []*Flag) {
	for u := c.usual; u != nil; u = u.usual {
		all = append(all, u.Flags...)
	}
	return all
}

// Find is the command below c with a name, or nil.
func (c *Command) Find(name string) *Command {
	for _, child := range c.Commands {
		if child.Name == name || slices.Contains(child.Aliases, name) {
			return child
		}
	}
	return nil
}

// Target is the struct that c was made of.
func (c *Command) Target() any { return c.target }

// words are the parts of a tag with commas.
func words(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// dashed is the name of a field as a flag's: SSHKeys is ssh-keys.
func dashed(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if i > 0 && beginsWord(runes, i) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func beginsWord(name []rune, i int) bool {
	before, here := name[i-1], name[i]
	switch {
	case unicode.IsUpper(before) && unicode.IsUpper(here):
		return i+1 < len(name) && unicode.IsLower(name[i+1])
	case unicode.IsUpper(before):
		return unicode.IsDigit(here)
	}
	return unicode.IsUpper(here) || unicode.IsDigit(before) != unicode.IsDigit(here)
}
