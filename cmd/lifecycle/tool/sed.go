package tool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// sed knows the commands s, d, p and q with addresses N, $, /expression/ and
// ranges of them, and -n, -e, -E, -r and -i.
func sed(s streams, args []string) error {
	for i, arg := range args {
		// Several -e are one script.
		if arg == "-e" && i+1 < len(args) && i > 1 && args[i-2] == "-e" {
			return sed(s, append(append(append([]string{}, args[:i-1]...), args[i-1]+"\n"+args[i+1]), args[i+2:]...))
		}
	}
	o, names, err := parse("nEre:i", args)
	if err != nil {
		return err
	}
	script, ok := o['e']
	if !ok {
		if len(names) == 0 {
			return errors.New("missing script")
		}
		script, names = names[0], names[1:]
	}
	commands, err := parseSed(script, o.has('E') || o.has('r'))
	if err != nil {
		return err
	}
	e := editor{commands: commands, quiet: o.has('n')}
	if !o.has('i') {
		return eachInput(s, names, func(_ string, r io.Reader) error {
			out, err := e.edit(r)
			if err == nil {
				_, err = s.out.Write(out)
			}
			return err
		})
	}
	return each(s, "sed", names, func(name string) error {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		out, err := e.edit(f)
		f.Close()
		if err != nil {
			return err
		}
		return os.WriteFile(name, out, 0o666)
	})
}

// address selects lines: a number, the last, or those that match.
type address struct {
	line int // -1 is the last
	expr *regexp.Regexp
}

// sedCommand is one command, with the state of its range.
type sedCommand struct {
	from, to *address // nil when not given
	negated  bool
	name     byte // s, d, p or q
	expr     *regexp.Regexp
	with     string // Go's template of the replacement
	global   bool
	print    bool
	inRange  bool
}

type editor struct {
	commands []*sedCommand
	quiet    bool
}

func (e editor) edit(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(r)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	text, ended := strings.CutSuffix(string(data), "\n")
	lines := strings.Split(text, "\n")
	var out bytes.Buffer
	for _, c := range e.commands {
		c.inRange = false
	}
	for i, line := range lines {
		end := "\n"
		if i == len(lines)-1 && !ended {
			end = ""
		}
		if e.line(&out, line, end, i+1, i == len(lines)-1) {
			break
		}
	}
	return out.Bytes(), nil
}

// line applies the commands to a line and reports whether to quit.
func (e editor) line(out *bytes.Buffer, line, end string, number int, last bool) (quit bool) {
	for _, c := range e.commands {
		if c.selects(line, number, last) == c.negated {
			continue
		}
		switch c.name {
		case 'd':
			return false
		case 'p':
			out.WriteString(line + end)
		case 'q':
			quit = true
		case 's':
			changed, ok := c.substitute(line)
			line = changed
			if ok && c.print {
				out.WriteString(line + end)
			}
		}
		if quit {
			break
		}
	}
	if !e.quiet {
		out.WriteString(line + end)
	}
	return quit
}

func (a *address) matches(line string, number int, last bool) bool {
	if a.expr != nil {
		return a.expr.MatchString(line)
	}
	return a.line == number || a.line == -1 && last
}

func (c *sedCommand) selects(line string, number int, last bool) bool {
	switch {
	case c.from == nil:
		return true
	case c.to == nil:
		return c.from.matches(line, number, last)
	case c.inRange:
		c.inRange = !c.to.matches(line, number, last)
		return true
	}
	started := c.from.matches(line, number, last)
	// A range whose end is behind is of one line.
	c.inRange = started && (c.to.expr != nil || c.to.line == -1 && !last || c.to.line > number)
	return started
}

func (c *sedCommand) substitute(line string) (string, bool) {
	if !c.expr.MatchString(line) {
		return line, false
	}
	if c.global {
		return c.expr.ReplaceAllString(line, c.with), true
	}
	at := c.expr.FindStringSubmatchIndex(line)
	return line[:at[0]] + string(c.expr.ExpandString(nil, c.with, line, at)) + line[at[1]:], true
}

// sedParser reads a script from its start.
type sedParser struct {
	rest     string
	extended bool
}

func parseSed(script string, extended bool) ([]*sedCommand, error) {
	p := &sedParser{script, extended}
	var all []*sedCommand
	for {
		p.rest = strings.TrimLeft(p.rest, " \t\n;")
		if p.rest == "" {
			return all, nil
		}
		c, err := p.command()
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
}

func (p *sedParser) command() (*sedCommand, error) {
	c := &sedCommand{}
	var err error
	if c.from, err = p.address(); err != nil {
		return nil, err
	}
	if strings.HasPrefix(p.rest, ",") && c.from != nil {
		p.rest = p.rest[1:]
		if c.to, err = p.address(); err != nil || c.to == nil {
			return nil, errors.Join(err, errors.New("unexpected `,'"))
		}
	}
	p.rest = strings.TrimLeft(p.rest, " \t")
	if strings.HasPrefix(p.rest, "!") {
		c.negated, p.rest = true, strings.TrimLeft(p.rest[1:], " \t")
	}
	if p.rest == "" {
		return nil, errors.New("missing command")
	}
	c.name, p.rest = p.rest[0], p.rest[1:]
	switch c.name {
	case 'd', 'p', 'q':
		return c, nil
	case 's':
		return c, p.substitution(c)
	}
	return nil, fmt.Errorf("unknown command: `%c'", c.name)
}

func (p *sedParser) address() (*address, error) {
	switch {
	case p.rest == "":
		return nil, nil
	case p.rest[0] == '$':
		p.rest = p.rest[1:]
		return &address{line: -1}, nil
	case p.rest[0] == '/':
		p.rest = p.rest[1:]
		text, err := p.until('/')
		if err != nil {
			return nil, err
		}
		expr, err := compile(text, p.extended, false)
		return &address{expr: expr}, err
	}
	digits := p.rest[:len(p.rest)-len(strings.TrimLeft(p.rest, "0123456789"))]
	if digits == "" {
		return nil, nil
	}
	p.rest = p.rest[len(digits):]
	n, err := strconv.Atoi(digits)
	return &address{line: n}, err
}

// until reads up to the delimiter, which a backslash makes an ordinary
// character.
func (p *sedParser) until(delimiter byte) (string, error) {
	var b strings.Builder
	for i := 0; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '\\' && i+1 < len(p.rest):
			i++
			if p.rest[i] != delimiter {
				b.WriteByte('\\')
			}
			b.WriteByte(p.rest[i])
		case c == delimiter:
			p.rest = p.rest[i+1:]
			return b.String(), nil
		default:
			b.WriteByte(c)
		}
	}
	return "", errors.New("unterminated expression")
}

func (p *sedParser) substitution(c *sedCommand) error {
	if p.rest == "" {
		return errors.New("unterminated `s' command")
	}
	delimiter := p.rest[0]
	p.rest = p.rest[1:]
	pattern, err := p.until(delimiter)
	if err != nil {
		return err
	}
	replacement, err := p.until(delimiter)
	if err != nil {
		return err
	}
	ignoreCase := false
	for p.rest != "" && strings.IndexByte("gpiI", p.rest[0]) >= 0 {
		c.global = c.global || p.rest[0] == 'g'
		c.print = c.print || p.rest[0] == 'p'
		ignoreCase = ignoreCase || p.rest[0] == 'i' || p.rest[0] == 'I'
		p.rest = p.rest[1:]
	}
	c.with = template(replacement)
	c.expr, err = compile(pattern, p.extended, ignoreCase)
	return err
}

// template turns sed's replacement (\1, &) into regexp's (${1}, ${0}).
func template(replacement string) string {
	var b strings.Builder
	for i := 0; i < len(replacement); i++ {
		c := replacement[i]
		switch {
		case c == '\\' && i+1 < len(replacement):
			i++
			switch next := replacement[i]; {
			case '0' <= next && next <= '9':
				b.WriteString("${" + string(next) + "}")
			case next == 'n':
				b.WriteByte('\n')
			case next == 't':
				b.WriteByte('\t')
			case next == '$':
				b.WriteString("$$")
			default:
				b.WriteByte(next)
			}
		case c == '&':
			b.WriteString("${0}")
		case c == '$':
			b.WriteString("$$")
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
