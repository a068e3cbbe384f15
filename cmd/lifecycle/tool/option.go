package tool

import (
	"fmt"
	"strings"
)

// options are parsed flags: letters that stand alone map to "", those that
// take a value to it.
type options map[byte]string

// parse reads single-letter flags, joined or not, up to the first other
// argument or `--`. Letters followed by a colon in spec take a value.
func parse(spec string, args []string) (options, []string, error) {
	found := options{}
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			break
		}
		for i := 1; i < len(arg); i++ {
			at := strings.IndexByte(spec, arg[i])
			if at < 0 || arg[i] == ':' {
				return nil, nil, fmt.Errorf("unknown option -%c", arg[i])
			}
			if at+1 == len(spec) || spec[at+1] != ':' {
				found[arg[i]] = ""
				continue
			}
			value := arg[i+1:]
			if value == "" {
				if len(args) == 0 {
					return nil, nil, fmt.Errorf("option -%c needs a value", arg[i])
				}
				value, args = args[0], args[1:]
			}
			found[arg[i]] = value
			break
		}
	}
	return found, args, nil
}

func (o options) has(letter byte) bool {
	_, ok := o[letter]
	return ok
}
