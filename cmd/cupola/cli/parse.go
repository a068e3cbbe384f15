package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"cupola/runtime/suggest"
)

// Options say what is not in the struct.
type Options struct {
	Name, Help string                                           // of the program
	Types      map[reflect.Type]Decode                          // how values of these types are read
	File       string                                           // the flag that names a configuration file
	Read       func(file io.Reader) (map[string]Setting, error) // reads it: its keys are names of flags, with dashes or underscores
}

// Setting is a value of a configuration file.
type Setting struct {
	Value any
	Line  int // of its key; from 1 on
	file  string
}

// Parser reads command lines of a program, one in its life.
type Parser struct {
	Options
	Program *Command
	help    *Flag
}

// New makes the parser of a struct, to which of points.
func New(of any, o Options) (*Parser, error) {
	root, err := build(o.Name, reflect.ValueOf(of).Elem(), o)
	if err != nil {
		return nil, fmt.Errorf("the command line: %w", err)
	}
	root.Help = o.Help
	asked := false
	help := &Flag{Value: Value{Name: "help", Help: "Show help.", field: reflect.ValueOf(&asked).Elem()}, Short: "h", bare: "true"}
	root.Flags = append([]*Flag{help}, root.Flags...)
	return &Parser{o, root, help}, nil
}

// Error is a command line that cannot be understood.
type Error struct {
	Command *Command // as far as it was understood
	Err     error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrHelp says that the help of Error's command is asked for.
var ErrHelp = errors.New("help is asked for")

// Parse reads a command line into the struct, and returns the command that it
// names. Its errors are of type *Error.
func (p *Parser) Parse(args []string) (*Command, error) {
	c, args, err := p.find(args)
	if err == nil {
		err = c.takeArgs(args)
	}
	if err == nil {
		err = p.fill(c)
	}
	if err == nil {
		err = c.verify()
	}
	if err != nil {
		return nil, &Error{c, err}
	}
	return c, nil
}

// find takes the flags, and returns the command and its arguments.
func (p *Parser) find(args []string) (*Command, []string, error) {
	for at := p.Program; ; {
		set := at.flagSet()
		if err := set.Parse(args); err != nil {
			return at, nil, at.explain(err)
		}
		if p.help.given {
			return at, nil, ErrHelp
		}
		args = set.Args()
		if len(at.Commands) == 0 {
			return at, args, nil
		}
		switch {
		case len(args) == 0 && at.usual == nil:
			return at, nil, ErrHelp
		case len(args) > 0 && set.ArgsLenAtDash() < 0 && at.Find(args[0]) != nil:
			at, args = at.Find(args[0]), args[1:]
		case at.usual != nil:
			if set.ArgsLenAtDash() >= 0 {
				args = append([]string{"--"}, args...)
			}
			at = at.usual
		default:
			return at, nil, fmt.Errorf("unknown command %q%s", args[0], suggest.Hint(args[0], at.names()))
		}
	}
}

// names are those of the commands below c.
func (c *Command) names() (all []string) {
	for _, child := range c.Commands {
		if !child.Hidden {
			all = append(append(all, child.Name), child.Aliases...)
		}
	}
	return all
}

// flagSet is what may be given where c was named: its flags, those above it, and
// those of the command that runs if none is named.
func (c *Command) flagSet() *pflag.FlagSet {
	set := pflag.NewFlagSet(c.Name, pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.SetInterspersed(len(c.Commands) == 0)
	for _, f := range append(c.AllFlags(), c.usualFlags()...) {
		f.addTo(set)
	}
	return set
}

// explain says what is wrong with a flag.
func (c *Command) explain(err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			return fmt.Errorf("unknown flag -%s", name)
		}
		var names []string
		for _, f := range c.AllFlags() {
			if !f.Hidden {
				names = append(names, "--"+f.Name)
			}
		}
		return fmt.Errorf("unknown flag --%s%s", name, suggest.Hint("--"+name, names))
	}
	if bare, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("--%s needs a value", bare.GetFlag().Name)
	}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("--%s: %w", bad.GetFlag().Name, errors.Unwrap(bad))
	}
	return err
}

// takeArgs gives the arguments their values.
func (c *Command) takeArgs(args []string) error {
	for _, a := range c.Args {
		for len(args) > 0 && (!a.given || a.isList()) {
			if err := a.set(args[0]); err != nil {
				return fmt.Errorf("<%s>: %w", a.Name, err)
			}
			args = args[1:]
		}
	}
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}

// fill gives what the command line did not name its value of elsewhere.
func (p *Parser) fill(c *Command) error {
	file, err := p.file()
	if err != nil {
		return err
	}
	for _, f := range c.AllFlags() {
		if err := f.fill(file[f.Name]); err != nil {
			return fmt.Errorf("--%s: %w", f.Name, err)
		}
	}
	for _, a := range c.Args {
		if err := a.fill(Setting{}); err != nil {
			return fmt.Errorf("<%s>: %w", a.Name, err)
		}
	}
	return nil
}

// file is the content of the configuration file, if there is one.
func (p *Parser) file() (map[string]Setting, error) {
	i := slices.IndexFunc(p.Program.Flags, func(f *Flag) bool { return p.File != "" && f.Name == p.File })
	if i < 0 {
		return nil, nil
	}
	flag := p.Program.Flags[i]
	if err := flag.fill(Setting{}); err != nil || flag.field.String() == "" {
		return nil, err
	}
	f, err := os.Open(flag.field.String())
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag.Name, err)
	}
	defer f.Close()
	values, err := p.Read(f)
	if err != nil {
		return nil, fmt.Errorf("the configuration file: %w", err)
	}
	known := map[string]bool{}
	p.Program.note(known)
	named := map[string]Setting{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		name := strings.ReplaceAll(key, "_", "-")
		if !known[name] {
			return nil, fmt.Errorf("unknown key %q in the configuration file: give flags of '%s serve'%s", key, p.Name, suggest.Hint(name, slices.Sorted(maps.Keys(known))))
		}
		one := values[key]
		one.file = f.Name()
		named[name] = one
	}
	return named, nil
}

// note notes the names of all flags.
func (c *Command) note(names map[string]bool) {
	for _, f := range c.Flags {
		names[f.Name] = true
	}
	for _, child := range c.Commands {
		child.note(names)
	}
}

// verify holds that all is there, that it fits together, and what the structs
// themselves require.
func (c *Command) verify() error {
	if err := c.complete(); err != nil {
		return err
	}
	chosen := map[string]*Flag{}
	for _, f := range c.AllFlags() {
		if err := f.check(); err != nil {
			return fmt.Errorf("--%s: %w", f.Name, err)
		}
		if !f.given || f.xor == "" {
			continue
		}
		if other := chosen[f.xor]; other != nil {
			return fmt.Errorf("--%s and --%s can't be used together", other.Name, f.Name)
		}
		chosen[f.xor] = f
	}
	for _, a := range c.Args {
		if err := a.check(); err != nil {
			return fmt.Errorf("<%s>: %w", a.Name, err)
		}
	}
	for _, above := range c.line() {
		for _, v := range above.validate {
			if err := v.Validate(); err != nil {
				return err
			}
		}
	}
	return nil
}

// complete names what is missing.
func (c *Command) complete() error {
	var missing []string
	for _, f := range c.AllFlags() {
		if f.Required && !f.given {
			missing = append(missing, f.String())
		}
	}
	for _, a := range c.Args {
		if a.Required && !a.given {
			missing = append(missing, a.String())
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("missing: %s", strings.Join(missing, " "))
	}
	return nil
}
