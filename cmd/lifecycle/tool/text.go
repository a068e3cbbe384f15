package tool

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// maxLine bounds a line, in bytes.
const maxLine = 16 << 20

// eachInput calls f with each file of names, standard input when there are
// none and for "-".
func eachInput(s streams, names []string, f func(name string, r io.Reader) error) error {
	if len(names) == 0 {
		names = []string{"-"}
	}
	for _, name := range names {
		if name == "-" {
			if err := f(name, s.in); err != nil {
				return err
			}
			continue
		}
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		err = f(name, file)
		file.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// eachLine calls f with each line of all inputs, without its newline.
func eachLine(s streams, names []string, f func(line string)) error {
	return eachInput(s, names, func(_ string, r io.Reader) error {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxLine)
		for lines.Scan() {
			f(lines.Text())
		}
		return lines.Err()
	})
}

// cat knows nothing but its files.
func cat(s streams, _ options, names []string) error {
	return eachInput(s, names, func(_ string, r io.Reader) error {
		_, err := io.Copy(s.out, r)
		return err
	})
}

func allLines(s streams, names []string) ([]string, error) {
	var all []string
	err := eachLine(s, names, func(line string) { all = append(all, line) })
	return all, err
}

// lineCount reads -n N, -c N and the old form -N.
func lineCount(args []string) (n int, bytes bool, rest []string, err error) {
	if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		if old, err := strconv.Atoi(args[0][1:]); err == nil {
			return old, false, args[1:], nil
		}
	}
	o, rest, err := parse("n:c:", args)
	if err != nil {
		return 0, false, nil, err
	}
	n = 10
	for letter, value := range o {
		n, err = strconv.Atoi(value)
		bytes = letter == 'c'
		if err != nil {
			return 0, false, nil, fmt.Errorf("invalid number %q", value)
		}
	}
	return n, bytes, rest, nil
}

func head(s streams, args []string) error {
	n, inBytes, names, err := lineCount(args)
	if err != nil {
		return err
	}
	return eachInput(s, names, func(_ string, r io.Reader) error {
		if inBytes {
			_, err := io.CopyN(s.out, r, int64(n))
			if err == io.EOF {
				err = nil
			}
			return err
		}
		b := bufio.NewReader(r)
		for range n {
			line, err := b.ReadBytes('\n')
			if _, werr := s.out.Write(line); werr != nil {
				return werr
			}
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// tail prints the end of its inputs; `-n +N` starts at a line.
func tail(s streams, args []string) error {
	from := len(args) > 1 && args[0] == "-n" && strings.HasPrefix(args[1], "+")
	n, inBytes, names, err := lineCount(args)
	if err != nil {
		return err
	}
	return eachInput(s, names, func(_ string, r io.Reader) error {
		data, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if inBytes {
			_, err = s.out.Write(data[max(0, len(data)-n):])
			return err
		}
		lines := bytes.SplitAfter(data, []byte("\n"))
		if len(lines[len(lines)-1]) == 0 {
			lines = lines[:len(lines)-1]
		}
		start := max(0, len(lines)-n)
		if from {
			start = min(len(lines), max(0, n-1))
		}
		_, err = s.out.Write(bytes.Join(lines[start:], nil))
		return err
	})
}

func wc(s streams, o options, names []string) error {
	return eachInput(s, names, func(name string, r io.Reader) error {
		data, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		var parts []string
		for _, f := range []struct {
			letter byte
			n      int
		}{{'l', bytes.Count(data, []byte("\n"))}, {'w', len(bytes.Fields(data))}, {'c', len(data)}} {
			if len(o) == 0 || o.has(f.letter) {
				parts = append(parts, strconv.Itoa(f.n))
			}
		}
		if name != "-" {
			parts = append(parts, name)
		}
		fmt.Fprintln(s.out, strings.Join(parts, " "))
		return nil
	})
}

func sortLines(s streams, o options, names []string) error {
	lines, err := allLines(s, names)
	if err != nil {
		return err
	}
	slices.SortStableFunc(lines, func(a, b string) int {
		if o.has('n') {
			if d := leadingNumber(a) - leadingNumber(b); d != 0 {
				return int(max(-1, min(1, d)))
			}
		}
		return strings.Compare(a, b)
	})
	if o.has('u') {
		lines = slices.Compact(lines)
	}
	if o.has('r') {
		slices.Reverse(lines)
	}
	for _, line := range lines {
		fmt.Fprintln(s.out, line)
	}
	return nil
}

func leadingNumber(s string) int64 {
	s = strings.TrimLeft(s, " \t")
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || end == 0 && s[end] == '-') {
		end++
	}
	n, _ := strconv.ParseInt(s[:end], 10, 64)
	return n
}

func uniq(s streams, o options, names []string) error {
	lines, err := allLines(s, names)
	for i := 0; i < len(lines); {
		n := 1
		for i+n < len(lines) && lines[i+n] == lines[i] {
			n++
		}
		if o.has('c') {
			fmt.Fprintf(s.out, "%7d ", n)
		}
		fmt.Fprintln(s.out, lines[i])
		i += n
	}
	return err
}

func seq(s streams, args []string) error {
	bounds := []int{1, 1, 1} // first, step, last
	var n []int
	for _, a := range args {
		v, err := strconv.Atoi(a)
		if err != nil {
			return fmt.Errorf("invalid integer %q", a)
		}
		n = append(n, v)
	}
	switch len(n) {
	case 1:
		bounds[2] = n[0]
	case 2:
		bounds[0], bounds[2] = n[0], n[1]
	case 3:
		bounds = n
	default:
		return fmt.Errorf("usage: seq [first [step]] last")
	}
	if bounds[1] == 0 {
		return fmt.Errorf("the step is 0")
	}
	out := bufio.NewWriter(s.out)
	for i := bounds[0]; bounds[1] > 0 && i <= bounds[2] || bounds[1] < 0 && i >= bounds[2]; i += bounds[1] {
		fmt.Fprintln(out, i)
	}
	return out.Flush()
}

func tee(s streams, o options, names []string) error {
	mode := os.O_TRUNC
	if o.has('a') {
		mode = os.O_APPEND
	}
	writers := []io.Writer{s.out}
	for _, name := range names {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|mode, 0o666)
		if err != nil {
			return err
		}
		defer f.Close()
		writers = append(writers, f)
	}
	_, err := io.Copy(io.MultiWriter(writers...), s.in)
	return err
}
