package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// chmod takes octal and symbolic modes and -R.
func chmod(s streams, args []string) error {
	recursive := false
	for len(args) > 0 && (args[0] == "-R" || args[0] == "-v" || args[0] == "-f") {
		recursive = recursive || args[0] == "-R"
		args = args[1:]
	}
	if len(args) < 2 {
		return errors.New("missing operand")
	}
	return each(s, "chmod", args[1:], func(name string) error {
		if !recursive {
			return changeMode(name, args[0])
		}
		return filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.Type()&fs.ModeSymlink != 0 {
				return err
			}
			return changeMode(path, args[0])
		})
	})
}

func changeMode(name, text string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	mode, err := newMode(info.Mode(), text)
	if err != nil {
		return err
	}
	// As the system call has it, with the bits that os.FileMode keeps apart.
	return os.Chmod(name, fs.FileMode(mode&0o777)|special(mode))
}

func special(mode uint32) fs.FileMode {
	var m fs.FileMode
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if mode&bit != 0 {
			m |= flag
		}
	}
	return m
}

// newMode applies `755` or `u+x,go-w` to a mode.
func newMode(old fs.FileMode, text string) (uint32, error) {
	if n, err := strconv.ParseUint(text, 8, 12); err == nil {
		return uint32(n), nil
	}
	mode := uint32(old.Perm())
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if old&flag != 0 {
			mode |= bit
		}
	}
	for _, clause := range strings.Split(text, ",") {
		at := strings.IndexAny(clause, "+-=")
		if at < 0 {
			return 0, fmt.Errorf("invalid mode %q", text)
		}
		who, bits := whoMask(clause[:at]), uint32(0)
		for _, letter := range clause[at+1:] {
			bit, ok := map[rune]uint32{'r': 0o444, 'w': 0o222, 'x': 0o111, 's': 0o6000, 't': 0o1000}[letter]
			if letter == 'X' {
				bit, ok = 0, true
				if old.IsDir() || old&0o111 != 0 {
					bit = 0o111
				}
			}
			if !ok {
				return 0, fmt.Errorf("invalid mode %q", text)
			}
			bits |= bit & who
		}
		switch clause[at] {
		case '+':
			mode |= bits
		case '-':
			mode &^= bits
		case '=':
			mode = mode&^(who&0o777) | bits
		}
	}
	return mode, nil
}

// whoMask is the bits that letters of u, g, o and a can change.
func whoMask(who string) uint32 {
	if who == "" || strings.Contains(who, "a") {
		return 0o7777
	}
	var mask uint32
	for _, letter := range who {
		mask |= map[rune]uint32{'u': 0o4700, 'g': 0o2070, 'o': 0o1007}[letter]
	}
	return mask
}
