package shell

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// Main is sh: `sh [-eux…] [-c command [name]] [file] [args…]`, a script from
// standard input when it is given neither, or what the user types where that
// is a terminal. It returns the exit code, unless the process became the
// script's last command.
func Main(argv []string) int {
	name := argv[0]
	options, rest, fromArgument, err := parseArguments(argv[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return exitUsage
	}
	var script io.Reader = os.Stdin
	switch {
	case fromArgument:
		script, rest = strings.NewReader(rest[0]), rest[1:]
		if len(rest) > 0 {
			name, rest = rest[0], rest[1:]
		}
	case len(rest) > 0:
		f, err := os.Open(rest[0])
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			return 127 // what every shell says of a script it cannot open
		}
		defer f.Close()
		script, name, rest = f, rest[0], rest[1:]
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = "/"
	}
	s, err := newShell(os.Environ(), dir, append(append(options, "--"), rest...)...)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return exitUsage
	}
	if script == os.Stdin && isTerminal(os.Stdin) {
		return s.talk(os.Stdin, os.Stderr)
	}
	return s.run(script, name, true)
}

// parseArguments takes off the options; fromArgument says that the first of
// the rest is the script.
func parseArguments(args []string) (options, rest []string, fromArgument bool, err error) {
	for len(args) > 0 && len(args[0]) > 1 && (args[0][0] == '-' || args[0][0] == '+') {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			break
		}
		letters := arg[1:]
		if strings.HasSuffix(letters, "o") && len(args) > 0 {
			options = append(options, arg[:1]+"o", args[0])
			letters, args = strings.TrimSuffix(letters, "o"), args[1:]
		}
		for _, letter := range letters {
			switch letter {
			case 'c':
				fromArgument = true
			case 's', 'i', 'l': // from input is the default, the others mean nothing here
			default:
				options = append(options, arg[:1]+string(letter))
			}
		}
	}
	if fromArgument && len(args) == 0 {
		return nil, nil, false, fmt.Errorf("-c: option requires an argument")
	}
	return options, args, fromArgument, nil
}
