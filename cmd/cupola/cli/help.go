package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Where help has no terminal, it is as wide as most of them.
const usualWidth = 80

// WriteHelp writes what a command does and takes, in lines of at most width
// columns, or of 80 if that is 0.
func (c *Command) WriteHelp(w io.Writer, width int) error {
	if width <= 0 {
		width = usualWidth
	}
	h := &help{width: width}
	h.text("Usage: "+c.usage(), "")
	h.text(c.Help, "\n")
	if len(c.Aliases) > 0 {
		h.text("Also called "+oneOf(c.Aliases)+".", "\n")
	}
	for paragraph := range strings.SplitSeq(strings.TrimSpace(c.Detail), "\n\n") {
		h.text(strings.ReplaceAll(paragraph, "\n", " "), "\n")
	}
	h.tables(table{"Arguments", c.argRows()})
	h.tables(c.groups()...)
	h.tables(table{"Flags", flagRows(c.ownFlags())})
	if c.Parent != nil {
		h.tables(table{"Flags of all commands", flagRows(c.line()[0].Flags)})
	}
	if len(c.Commands) > 0 {
		h.text(fmt.Sprintf("Run \"%s <command> --help\" for more about a command.", strings.Join(c.words(), " ")), "\n")
	}
	_, err := io.WriteString(w, h.String())
	return err
}

// words are the program's name and the command's.
func (c *Command) words() []string { return append([]string{c.line()[0].Name}, c.Path()...) }

// usage is the command line in short: with what it cannot do without.
func (c *Command) usage() string {
	all := c.words()
	if len(c.Commands) > 0 && c.usual == nil {
		all = append(all, "<command>")
	}
	for _, f := range c.AllFlags() {
		if f.Required {
			all = append(all, f.String())
		}
	}
	for _, a := range c.Args {
		all = append(all, a.String())
	}
	return strings.Join(append(all, "[flags]"), " ")
}

// ownFlags are those of c, without those of the program unless it is that.
func (c *Command) ownFlags() (all []*Flag) {
	for _, above := range c.line() {
		if above.Parent != nil || c.Parent == nil {
			all = append(all, above.Flags...)
		}
	}
	return append(all, c.usualFlags()...)
}

// table is a heading of help with what is below it.
type table struct {
	title string
	rows  []row
}

// row is what help says of one thing.
type row struct{ name, help string }

func (c *Command) argRows() (rows []row) {
	of := c
	for of.usual != nil {
		of = of.usual
	}
	for _, a := range of.Args {
		rows = append(rows, row{a.String(), a.Help})
	}
	return rows
}

// groups are the commands below c by their headings, in the order in which these
// first come.
func (c *Command) groups() (all []table) {
	for _, child := range c.Commands {
		if child.Hidden {
			continue
		}
		title := child.Group
		if title == "" {
			title = "Commands"
		}
		at := slices.IndexFunc(all, func(t table) bool { return t.title == title })
		if at < 0 {
			at, all = len(all), append(all, table{title: title})
		}
		all[at].rows = append(all[at].rows, row{strings.Join(child.Path(), " "), child.Help})
	}
	return all
}

func flagRows(flags []*Flag) (rows []row) {
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		name := "    --" + f.Name
		if f.Short != "" {
			name = "-" + f.Short + ", --" + f.Name
		}
		switch {
		case f.Negatable:
			name = strings.Replace(name, "--", "--[no-]", 1)
		case f.TakesValue():
			name += "=" + f.Sample()
		case !f.isBool():
			name += "[=" + f.Sample() + "]"
		}
		rows = append(rows, row{name, f.about()})
	}
	return rows
}

// about is the help of a flag, with its default and its environment variables.
func (f *Flag) about() string {
	text := strings.TrimSuffix(f.Help, ".")
	if len(f.Aliases) > 0 {
		text += " (also --" + strings.Join(f.Aliases, ", --") + ")"
	}
	if f.HasDefault && f.PlaceHolder != "" {
		text += " (default " + f.Default + ")"
	}
	if len(f.Envs) > 0 {
		text += " ($" + strings.Join(f.Envs, ", $") + ")"
	}
	if text == "" || strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// help is a text of lines that are not too wide.
type help struct {
	strings.Builder
	width int
}

// text adds a paragraph, if it says anything, after something.
func (h *help) text(paragraph, after string) {
	if paragraph == "" {
		return
	}
	h.WriteString(after)
	for _, line := range wrap(paragraph, h.width) {
		h.WriteString(line + "\n")
	}
}

// The columns of a table: its margin, what is between its columns, and the part of
// the width that the first one may have.
const (
	margin   = 2
	gap      = 2
	mostName = 3 // of eight
)

// tables adds tables whose columns are in line, without those that have no rows.
func (h *help) tables(all ...table) {
	widest, limit := 0, h.width*mostName/8
	for _, t := range all {
		for _, r := range t.rows {
			if n := utf8.RuneCountInString(r.name); n <= limit {
				widest = max(widest, n)
			}
		}
	}
	for _, t := range all {
		if len(t.rows) > 0 {
			h.WriteString("\n" + t.title + ":\n")
		}
		for _, r := range t.rows {
			h.row(r, margin+widest+gap)
		}
	}
}

// row adds a row, whose help begins at a column.
func (h *help) row(r row, at int) {
	name, indent := strings.Repeat(" ", margin)+r.name, strings.Repeat(" ", at)
	lines := wrap(r.help, max(h.width-at, h.width/3))
	if n := utf8.RuneCountInString(name); len(lines) == 0 {
		h.WriteString(name + "\n")
	} else if n+gap <= at {
		h.WriteString(name + indent[n:] + strings.Join(lines, "\n"+indent) + "\n")
	} else {
		h.WriteString(name + "\n" + indent + strings.Join(lines, "\n"+indent) + "\n")
	}
}

// wrap divides text into lines of at most width columns, if its words are not
// longer.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
