// Package scp is the far end of a copy by the old scp protocol, for images
// without an scp: `scp -t` takes files, `scp -f` gives them.
// Clients start it over SSH; newer ones use sftp unless told otherwise (-O).
package scp

import (
	"bufio"
	"fmt"
	"io"
	"os"
)

// Main is `scp -t [-rpdv] PATH` and `scp -f [-rpdv] PATH…`. It returns the exit
// code: 1 when anything could not be copied.
func Main(args []string) int {
	return run(args, os.Stdin, os.Stdout)
}

func run(args []string, in io.Reader, out io.Writer) int {
	o, err := parse(args)
	c := &copier{options: o, in: bufio.NewReader(in), out: out}
	switch {
	case err != nil:
		c.complain(err)
	case o.sink:
		err = c.take(o.paths[0])
	default:
		err = c.give()
	}
	if err != nil || c.faults > 0 {
		return 1
	}
	return 0
}

// options are scp's flags.
type options struct {
	sink, source        bool // -t, -f
	recursive, preserve bool // -r, -p
	directory           bool // -d: the target has to be one
	paths               []string
}

func parse(args []string) (o options, err error) {
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			break
		}
		for _, letter := range arg[1:] {
			switch letter {
			case 't':
				o.sink = true
			case 'f':
				o.source = true
			case 'r':
				o.recursive = true
			case 'p':
				o.preserve = true
			case 'd':
				o.directory = true
			case 'v', 'q': // of what the near end says
			default:
				return o, fmt.Errorf("scp: unknown option -%c", letter)
			}
		}
	}
	o.paths = args
	if o.sink == o.source || len(args) == 0 || o.sink && len(args) != 1 {
		return o, fmt.Errorf("usage: scp -t [-rpd] PATH, or scp -f [-rp] PATH…; copies between machines begin at the other end")
	}
	return o, nil
}

// copier is one end of the protocol: a line announces each file, the other end
// answers with a byte, 0 for yes.
type copier struct {
	options
	in     *bufio.Reader
	out    io.Writer
	faults int // things that were not copied
}

// The answers of the protocol.
const (
	okay    = 0
	warning = 1
	fatal   = 2
)

func (c *copier) accept() error {
	_, err := c.out.Write([]byte{okay})
	return err
}

// complain tells the other end what is not copied. The copy goes on.
func (c *copier) complain(err error) {
	c.faults++
	fmt.Fprintf(c.out, "%cscp: %v\n", warning, err)
}

// answer reads what the other end says; refused is a warning, after which the
// copy goes on.
func (c *copier) answer() (refused bool, err error) {
	b, err := c.in.ReadByte()
	if err != nil || b == okay {
		return false, err
	}
	text, err := c.line()
	if b == warning {
		c.faults++
		return true, err
	}
	return true, fmt.Errorf("the other end says: %s", text)
}

// maxLine bounds a line of the protocol: a name has at most 255 bytes.
const maxLine = 8 << 10

func (c *copier) line() (string, error) {
	var line []byte
	for len(line) < maxLine {
		b, err := c.in.ReadByte()
		if err != nil {
			return "", err
		}
		if b == '\n' {
			return string(line), nil
		}
		line = append(line, b)
	}
	return "", fmt.Errorf("a line of the protocol is longer than %d bytes", maxLine)
}
