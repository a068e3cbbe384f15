package tool

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
)

// grep knows -i -v -q -c -n -o -l -x -F -E -e -h -H -r.
func grep(s streams, o options, rest []string) error {
	pattern, ok := o['e']
	if !ok {
		if len(rest) == 0 {
			return fmt.Errorf("missing pattern")
		}
		pattern, rest = rest[0], rest[1:]
	}
	extended := o.has('E')
	if o.has('F') {
		pattern, extended = regexp.QuoteMeta(pattern), true
	}
	if o.has('x') && !extended {
		pattern = "^" + pattern + "$"
	} else if o.has('x') {
		pattern = "^(?:" + pattern + ")$"
	}
	expr, err := compile(pattern, extended, o.has('i'))
	if err != nil {
		fmt.Fprintf(s.err, "grep: %v\n", err)
		return status(2)
	}
	g := grepper{options: o, expr: expr, out: bufio.NewWriter(s.out), names: (len(rest) > 1 || o.has('r')) && !o.has('h')}
	if o.has('r') {
		rest, err = filesBelow(rest)
	}
	if err == nil && (len(rest) > 0 || !o.has('r')) {
		err = eachInput(s, rest, g.search)
	}
	if ferr := g.out.Flush(); err == nil {
		err = ferr
	}
	if err != nil {
		fmt.Fprintf(s.err, "grep: %v\n", err)
		return status(2)
	}
	if !g.found {
		return status(1)
	}
	return nil
}

// filesBelow are the files among names, and in the directories among them; the current directory's if there are none.
func filesBelow(names []string) (files []string, err error) {
	if len(names) == 0 {
		names = []string{"."}
	}
	for _, name := range names {
		err = errors.Join(err, filepath.WalkDir(name, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				files = append(files, path)
			}
			return err
		}))
	}
	return files, err
}

type grepper struct {
	options
	expr  *regexp.Regexp
	out   *bufio.Writer
	names bool
	found bool
}

func (g *grepper) search(name string, r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	prefix := ""
	if g.names || g.has('H') {
		prefix = name + ":"
	}
	matches := 0
	for number := 1; lines.Scan(); number++ {
		if g.expr.Match(lines.Bytes()) == g.has('v') {
			continue
		}
		matches++
		g.found = true
		if g.has('q') || g.has('l') {
			break
		}
		if !g.has('c') {
			g.print(prefix, number, lines.Text())
		}
	}
	switch {
	case g.has('q'):
	case g.has('l') && matches > 0:
		fmt.Fprintln(g.out, name)
	case g.has('c'):
		fmt.Fprintf(g.out, "%s%d\n", prefix, matches)
	}
	return lines.Err()
}

func (g *grepper) print(prefix string, number int, line string) {
	if g.has('n') {
		prefix += strconv.Itoa(number) + ":"
	}
	if !g.has('o') || g.has('v') {
		fmt.Fprintf(g.out, "%s%s\n", prefix, line)
		return
	}
	for _, match := range g.expr.FindAllString(line, -1) {
		fmt.Fprintf(g.out, "%s%s\n", prefix, match)
	}
}
