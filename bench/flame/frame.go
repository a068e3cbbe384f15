package main

import (
	"bufio"
	"cmp"
	"io"
	"slices"
	"strings"
)

// frame is a function as it was called by those below it.
type frame struct {
	name    string
	kernel  bool
	samples int // in it and in what it called
	calls   []*frame
}

// read adds the samples of some programs, each above a box of the program's name, as perf script prints them: a line with that name, a
// line for each function from the innermost one outwards, with its address and its name, and an empty line.
func (f *frame) read(r io.Reader, programs []string) error {
	in := bufio.NewScanner(r)
	var program string
	var stack []call
	end := func() {
		if slices.Contains(programs, program) && len(stack) > 0 {
			f.add(append(stack, call{name: program}))
		}
		program, stack = "", nil
	}
	for in.Scan() {
		switch line := in.Text(); {
		case line == "":
			end()
		case program == "":
			program = strings.TrimSpace(line)
		default:
			stack = append(stack, parseCall(line))
		}
	}
	end()
	return in.Err()
}

// call is a line of a stack.
type call struct {
	name   string
	kernel bool
}

func parseCall(line string) call {
	address, name, _ := strings.Cut(strings.TrimSpace(line), " ")
	name = strings.TrimSpace(name)
	return call{name: cmp.Or(name, unknown), kernel: len(address) == 16 && strings.HasPrefix(address, "ffff")}
}

// unknown is a function of a program without symbols.
const unknown = "[unknown]"

// add adds a sample. Functions without names that call each other are one box.
func (f *frame) add(stack []call) {
	f.samples++
	at := f
	for _, c := range slices.Backward(stack) {
		if c.name == unknown && at.name == unknown {
			continue
		}
		at = at.called(c)
		at.samples++
	}
}

func (f *frame) called(c call) *frame {
	for _, known := range f.calls {
		if known.name == c.name && known.kernel == c.kernel {
			return known
		}
	}
	made := &frame{name: c.name, kernel: c.kernel}
	f.calls = append(f.calls, made)
	return made
}
