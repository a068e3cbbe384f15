package cli

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Flag is a flag of a command.
type Flag struct {
	Value
	Short     string // its letter, if it has one
	Aliases   []string
	Hidden    bool
	Negatable bool

	bare string // the value of one that is given without
	xor  string // of the flags with this word, only one may be given
}

func newFlag(name string, field reflect.Value, tag reflect.StructTag, o Options) *Flag {
	f := &Flag{Value: newValue(name, field, tag, o), Short: tag.Get("short"), Aliases: words(tag.Get("aliases")), bare: tag.Get("bare"), xor: tag.Get("xor")}
	_, f.Required = tag.Lookup("required")
	_, f.Hidden = tag.Lookup("hidden")
	_, f.Negatable = tag.Lookup("negatable")
	if f.isBool() {
		f.bare = "true"
	}
	return f
}

func (f *Flag) isBool() bool {
	t := f.field.Type()
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Bool
}

// Given is what a flag without a value says.
func (f *Flag) Given() bool { return f.isBool() && f.field.Kind() == reflect.Bool && f.field.Bool() }

// TakesValue reports whether a value has to follow.
func (f *Flag) TakesValue() bool { return f.bare == "" }

// Sample stands for the value in help.
func (f *Flag) Sample() string {
	more := ""
	if f.sep != "" && f.pathType == "" && (f.isList() || f.isMap()) {
		more = f.sep + "..."
	}
	switch {
	case f.PlaceHolder != "" && f.isMap():
		return f.PlaceHolder
	case f.PlaceHolder != "":
		return f.PlaceHolder + more
	case f.HasDefault && f.field.Kind() == reflect.String:
		return strconv.Quote(f.Default)
	case f.HasDefault:
		return f.Default + more
	case f.isMap():
		return "NAME=VALUE" + more
	}
	return strings.ToUpper(f.Name) + more
}

// String is the flag as an error names it.
func (f *Flag) String() string {
	if f.TakesValue() {
		return "--" + f.Name + "=" + f.Sample()
	}
	return "--" + f.Name
}

// addTo adds the flag to a set.
func (f *Flag) addTo(set *pflag.FlagSet) {
	set.AddFlag(&pflag.Flag{Name: f.Name, Shorthand: f.Short, Value: setter(f.set), NoOptDefVal: f.bare})
	for _, alias := range f.Aliases {
		set.AddFlag(&pflag.Flag{Name: alias, Value: setter(f.set), NoOptDefVal: f.bare})
	}
	if f.Negatable {
		set.AddFlag(&pflag.Flag{Name: "no-" + f.Name, Value: setter(func(string) error { return f.set("false") }), NoOptDefVal: "true"})
	}
}

// setter is the value of a flag as pflag has it.
type setter func(text string) error

// Set takes a value.
func (s setter) Set(text string) error { return s(text) }

func (setter) String() string { return "" }

// Type is what pflag's own help would call it.
func (setter) Type() string { return "" }

// Arg is an argument of a command.
type Arg struct{ Value }

func newArg(name string, field reflect.Value, tag reflect.StructTag, o Options) *Arg {
	a := &Arg{newValue(name, field, tag, o)}
	a.sep = "" // each word is one
	_, optional := tag.Lookup("optional")
	a.Required = !optional && !a.HasDefault
	return a
}

// String is the argument as help shows it: <file>, [<name>] or [<name> ...].
func (a *Arg) String() string {
	text := "<" + a.Name + ">"
	if a.isList() {
		text += " ..."
	}
	if !a.Required {
		text = "[" + text + "]"
	}
	return text
}
