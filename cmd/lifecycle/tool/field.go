package tool

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// cut knows -d and -f, and -c, with lists like 1,3-5,7-.
func cut(s streams, o options, names []string) error {
	list, delimiter := o['f'], "\t"
	if d, ok := o['d']; ok {
		delimiter = d
	}
	if o.has('c') {
		list, delimiter = o['c'], ""
	}
	wanted, err := parseRanges(list)
	if err != nil {
		return err
	}
	return eachLine(s, names, func(line string) {
		if !o.has('c') && !strings.Contains(line, delimiter) {
			if !o.has('s') {
				fmt.Fprintln(s.out, line)
			}
			return
		}
		var kept []string
		for i, part := range strings.Split(line, delimiter) {
			if slices.ContainsFunc(wanted, func(r [2]int) bool { return r[0] <= i+1 && i+1 <= r[1] }) {
				kept = append(kept, part)
			}
		}
		fmt.Fprintln(s.out, strings.Join(kept, delimiter))
	})
}

func parseRanges(list string) ([][2]int, error) {
	var ranges [][2]int
	for _, part := range strings.Split(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		r := [2]int{1, 1 << 30}
		var err error
		if first != "" {
			r[0], err = strconv.Atoi(first)
		}
		if !isRange {
			r[1] = r[0]
		} else if last != "" && err == nil {
			r[1], err = strconv.Atoi(last)
		}
		if err != nil || part == "" || part == "-" {
			return nil, fmt.Errorf("invalid list %q", list)
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

// tr knows -d, ranges as a-z and the usual escapes.
func tr(s streams, o options, sets []string) error {
	if len(sets) == 0 || !o.has('d') && len(sets) < 2 {
		return fmt.Errorf("missing operand")
	}
	from := expandSet(sets[0])
	var to []byte
	if !o.has('d') {
		to = expandSet(sets[1])
		if len(to) == 0 {
			return fmt.Errorf("the second set is empty")
		}
	}
	data, err := io.ReadAll(s.in)
	if err != nil {
		return err
	}
	out := data[:0]
	for _, c := range data {
		i := bytes.LastIndexByte(from, c)
		switch {
		case i < 0:
			out = append(out, c)
		case to != nil:
			out = append(out, to[min(i, len(to)-1)])
		}
	}
	_, err = s.out.Write(out)
	return err
}

func expandSet(set string) []byte {
	classes := map[string]string{"[:upper:]": "A-Z", "[:lower:]": "a-z", "[:digit:]": "0-9", "[:space:]": " \t-\r", "[:alnum:]": "0-9A-Za-z", "[:alpha:]": "A-Za-z"}
	for name, chars := range classes {
		set = strings.ReplaceAll(set, name, chars)
	}
	set = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r", `\\`, `\`).Replace(set)
	var all []byte
	for i := 0; i < len(set); i++ {
		if i+2 < len(set) && set[i+1] == '-' && set[i] <= set[i+2] {
			for c := int(set[i]); c <= int(set[i+2]); c++ {
				all = append(all, byte(c))
			}
			i += 2
			continue
		}
		all = append(all, set[i])
	}
	return all
}
