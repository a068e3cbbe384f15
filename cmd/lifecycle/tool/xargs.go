package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
)

// maxArguments keeps a command line far below the kernel's limit.
const maxArguments = 4096

// xargs knows -0, -n, -I, -r and, for nothing, -t. The items of the input
// are separated by blanks, with -I by newlines, with -0 by NULs; quotes group.
func xargs(s streams, o options, command []string) error {
	if len(command) == 0 {
		command = []string{"echo"}
	}
	input, err := io.ReadAll(s.in)
	if err != nil {
		return err
	}
	items, err := o.items(string(input))
	if err != nil {
		return err
	}
	size := maxArguments
	if n, ok := o['n']; ok {
		if size, err = strconv.Atoi(n); err != nil || size < 1 {
			return fmt.Errorf("invalid number %q", n)
		}
	}
	placeholder, each := o['I']
	if each {
		size = 1
	}
	if len(items) == 0 && (o.has('r') || each) {
		return nil
	}
	var failed error
	for first := true; first || len(items) > 0; first = false {
		n := min(size, len(items))
		if err := start(s, commandLine(command, placeholder, items[:n])); err != nil {
			failed = err
		}
		items = items[n:]
	}
	return failed
}

func commandLine(command []string, placeholder string, items []string) []string {
	if placeholder == "" {
		return append(append([]string{}, command...), items...)
	}
	var argv []string
	for _, word := range command {
		argv = append(argv, strings.ReplaceAll(word, placeholder, items[0]))
	}
	return argv
}

func start(s streams, argv []string) error {
	cmd := exec.CommandContext(context.Background(), argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = s.out, s.err
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		fmt.Fprintf(s.err, "xargs: %s: No such file or directory\n", argv[0])
		return status(127)
	}
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return status(123) // what xargs makes of any failing command
	}
	return err
}

func (o options) items(input string) ([]string, error) {
	switch {
	case o.has('0'):
		return nonEmpty(strings.Split(input, "\x00")), nil
	case o.has('I'):
		return nonEmpty(strings.Split(input, "\n")), nil
	}
	return splitQuoted(input)
}

func nonEmpty(items []string) []string {
	var kept []string
	for _, item := range items {
		if strings.TrimSpace(item) != "" {
			kept = append(kept, item)
		}
	}
	return kept
}

// splitQuoted splits at blanks outside quotes; a backslash takes the next
// character as it is.
func splitQuoted(input string) ([]string, error) {
	var items []string
	var item strings.Builder
	var quote byte
	inItem := false
	for i := 0; i < len(input); i++ {
		c := input[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			item.WriteByte(c)
		case c == '\'' || c == '"':
			quote, inItem = c, true
		case c == '\\' && i+1 < len(input):
			i++
			item.WriteByte(input[i])
			inItem = true
		case strings.IndexByte(" \t\n", c) < 0:
			item.WriteByte(c)
			inItem = true
		case inItem:
			items = append(items, item.String())
			item.Reset()
			inItem = false
		}
	}
	if quote != 0 {
		return nil, errors.New("unmatched quote")
	}
	if inItem {
		items = append(items, item.String())
	}
	return items, nil
}
