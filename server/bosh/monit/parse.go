package monit

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"cupola/runtime/contract"
	"cupola/runtime/pattern"
)

// Bounds of a file.
const (
	maxBytes  = 1 << 20
	maxChecks = 100
)

// defaultTimeout is monit's time for a program.
const defaultTimeout = 30 * time.Second

var nameRule = pattern.Lazy(`^[A-Za-z0-9_][A-Za-z0-9_.@:+-]{0,127}$`)

// check is a check under way.
type check struct {
	contract.MonitCheck
	line int
}

// File is a monit file.
type File struct {
	Checks  []contract.MonitCheck // each after those that it depends on
	Ignored []string              // statements without effect, with their lines
}

// Parse reads a monit file.
func Parse(text []byte) (f File, err error) {
	if len(text) > maxBytes {
		return f, fmt.Errorf("the file has %d bytes; at most %d are read", len(text), maxBytes)
	}
	words, err := scan(string(text))
	if err != nil {
		return f, err
	}
	p := &parser{words: words}
	for p.more() {
		if err := p.statement(); err != nil {
			return f, err
		}
	}
	f.Ignored = p.ignored
	f.Checks, err = p.ordered()
	return f, err
}

type parser struct {
	words   []word
	at      int
	checks  []*check
	ignored []string
}

func (p *parser) more() bool { return p.at < len(p.words) }

// peek returns the next word; at the end, an empty one in quotes, which no keyword equals.
func (p *parser) peek() word {
	if p.more() {
		return p.words[p.at]
	}
	line := 1
	if p.at > 0 {
		line = p.words[p.at-1].line
	}
	return word{quoted: true, line: line}
}

func (p *parser) next() word {
	w := p.peek()
	p.at++
	return w
}

// accept skips the next word if it is one of some keywords.
func (p *parser) accept(keywords ...string) bool {
	if p.peek().is(keywords...) {
		p.at++
		return true
	}
	return false
}

// noise skips what monit lets one write for readability.
func (p *parser) noise() {
	for p.accept("with", "within", "and", "has", "using", "use", "on", "only", "is", "are", "for", "the", "program") {
	}
}

// value reads the word after a keyword.
func (p *parser) value(of word) (string, error) {
	p.noise()
	w := p.next()
	if w.text == "" {
		return "", fmt.Errorf("line %d: %q has no value", of.line, of.text)
	}
	return w.text, nil
}

// statement reads a check, or a statement of one.
func (p *parser) statement() error {
	w := p.next()
	if w.is("check") {
		return p.check(w)
	}
	if len(p.checks) == 0 {
		return unknown(w, "a file begins with 'check process'")
	}
	c := p.checks[len(p.checks)-1]
	switch {
	case w.is("start"):
		return p.program(w, &c.Start)
	case w.is("stop"):
		return p.program(w, &c.Stop)
	case w.is("depends"):
		return p.depends(w, c)
	case w.is("group", "mode", "onreboot"):
		_, err := p.value(w)
		return err
	case w.is("restart"): // a program of monit 5.7 and newer, which BOSH's agent does not call
		return p.program(w, &contract.MonitProgram{})
	case w.is("if", "every", "alert", "noalert"):
		begins := p.at - 1
		p.skip()
		all := p.words[begins:p.at]
		if made, ok := condition(all[1:]); ok && w.is("if") {
			made.Text = written(all)
			c.Conditions = append(c.Conditions, made)
		} else {
			p.ignored = append(p.ignored, fmt.Sprintf("line %d: %s", w.line, written(all)))
		}
		return nil
	}
	return unknown(w, "known are check, with pidfile, start, stop, depends, group, mode, if and, without effect, every and alert")
}

func unknown(w word, want string) error {
	return fmt.Errorf("line %d: cannot read %q here: %s", w.line, cut(w.text), want)
}

func cut(text string) string { return cutAt(text, 60) }

func cutAt(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// skip passes over a statement, up to the first word that begins another one. What a test does ("then restart",
// "then alert") is a part of it.
func (p *parser) skip() {
	action := false
	for p.more() {
		w := p.peek()
		if !action && w.begins() {
			return
		}
		action = w.is("then", "else")
		p.at++
	}
}

// begins reports whether the word begins a statement.
func (w word) begins() bool {
	return w.is("check", "start", "stop", "group", "depends", "if", "every", "mode", "onreboot", "restart", "alert", "noalert", "set", "include")
}

// check reads "check process NAME with pidfile PATH".
func (p *parser) check(at word) error {
	kind, name := p.next(), p.next()
	if !kind.is("process") {
		return fmt.Errorf("line %d: 'check %s' has no equivalent: only processes are run; give the job's processes in quarks.bpm.processes", kind.line, cut(kind.text))
	}
	if !nameRule().MatchString(name.text) {
		return fmt.Errorf("line %d: %q is not the name of a process", name.line, cut(name.text))
	}
	if n := slices.IndexFunc(p.checks, func(c *check) bool { return c.Name == name.text }); n >= 0 {
		return fmt.Errorf("line %d: process %q is there twice, first in line %d", name.line, name.text, p.checks[n].line)
	}
	p.noise()
	if w := p.next(); !w.is("pidfile") {
		return fmt.Errorf("line %d: process %q: got %q; want 'with pidfile PATH': processes are found by their pidfile alone", w.line, name.text, cut(w.text))
	}
	p.noise()
	pidfile := p.next()
	if !path.IsAbs(pidfile.text) {
		return fmt.Errorf("line %d: process %q: pidfile %q is not an absolute path", pidfile.line, name.text, cut(pidfile.text))
	}
	p.checks = append(p.checks, &check{contract.MonitCheck{Name: name.text, Pidfile: path.Clean(pidfile.text)}, at.line})
	if len(p.checks) > maxChecks {
		return fmt.Errorf("line %d: more than %d processes", at.line, maxChecks)
	}
	return nil
}

// program reads a command, and whom and how long it runs as.
func (p *parser) program(of word, into *contract.MonitProgram) error {
	command, err := p.value(of)
	if err != nil {
		return err
	}
	made := contract.MonitProgram{Args: arguments(command), Timeout: defaultTimeout}
	if len(made.Args) == 0 || !path.IsAbs(made.Args[0]) {
		return fmt.Errorf("line %d: the %s program %q does not begin with an absolute path", of.line, strings.ToLower(of.text), cut(command))
	}
	for {
		p.noise()
		w := p.peek()
		switch {
		case w.is("as"):
			p.at++
			continue
		case w.is("uid"):
			p.at++
			made.User, err = p.value(w)
		case w.is("gid"):
			p.at++
			made.Group, err = p.value(w)
		case w.is("timeout"):
			p.at++
			made.Timeout, err = p.duration(w)
		default:
			*into = made
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// duration reads "90 seconds".
func (p *parser) duration(of word) (time.Duration, error) {
	text, err := p.value(of)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > int(24*time.Hour/time.Second) {
		return 0, fmt.Errorf("line %d: timeout %q is not a number of seconds from 1 to 86400", of.line, cut(text))
	}
	unit := time.Second
	switch {
	case p.accept("second", "seconds", "s"):
	case p.accept("minute", "minutes", "m"):
		unit = time.Minute
	}
	return time.Duration(n) * unit, nil
}

// depends reads the names of checks, up to the next statement.
func (p *parser) depends(at word, c *check) error {
	for {
		name, err := p.value(at)
		if err != nil {
			return err
		}
		c.Depends = append(c.Depends, name)
		if !p.more() || p.peek().begins() {
			return nil
		}
	}
}

// ordered returns the checks, each after those that it depends on, otherwise as they are in the file.
func (p *parser) ordered() (all []contract.MonitCheck, err error) {
	state := map[string]int{} // 1: on the way, 2: done
	var visit func(c *check) error
	visit = func(c *check) error {
		switch state[c.Name] {
		case 1:
			return fmt.Errorf("line %d: process %q depends on itself", c.line, c.Name)
		case 2:
			return nil
		}
		state[c.Name] = 1
		for _, name := range c.Depends {
			n := slices.IndexFunc(p.checks, func(c *check) bool { return c.Name == name })
			if n < 0 {
				return fmt.Errorf("line %d: process %q depends on %q, which is not in this file", c.line, c.Name, cut(name))
			}
			if err := visit(p.checks[n]); err != nil {
				return err
			}
		}
		state[c.Name] = 2
		all = append(all, c.MonitCheck)
		return nil
	}
	for _, c := range p.checks {
		if err := visit(c); err != nil {
			return nil, err
		}
	}
	return all, nil
}
