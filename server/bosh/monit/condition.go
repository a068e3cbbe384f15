package monit

import (
	"cmp"
	"path"
	"strconv"
	"strings"
	"time"

	"cupola/runtime/contract"
	"cupola/runtime/pattern"
)

// What conditions look like, in lower case and without words that mean nothing.
var (
	memoryRule = pattern.Lazy(`^(?:total)?mem(?:ory)? ?(?:>|gt|greater) ?([0-9]+(?:\.[0-9]+)?) ?(b|kb|mb|gb)?(?: for ([0-9]{1,4}) cycles?)?$`)
	portRule   = pattern.Lazy(`^failed(?: host (\S+))? port ([0-9]{1,5})(?: type tcp)?(?: proto(?:col)? (http))?(?: request (\S+))?(?: timeout ([0-9]{1,4}) seconds?)?(?: for ([0-9]{1,4}) cycles?)?$`)
)

// noiseWords mean nothing in a condition.
var noiseWords = []string{"with", "and", "has", "using", "use", "on", "only", "is", "are", "the", "than", "usage", "program"}

// portWait is monit's time for a server to answer.
const portWait = 5 * time.Second

// condition reads what follows "if". It returns false for what has no effect here.
func condition(words []word) (c contract.MonitCondition, ok bool) {
	then := 0
	for then < len(words) && !words[then].is("then") {
		then++
	}
	if then+1 >= len(words) {
		return c, false
	}
	text := plain(words[:then])
	if m := memoryRule().FindStringSubmatch(text); m != nil {
		size, err := strconv.ParseFloat(m[1], 64)
		c.Memory, c.Looks = uint64(size*float64(units[m[2]])), looks(m[3])
		ok = err == nil && c.Memory > 0
	} else if m := portRule().FindStringSubmatch(text); m != nil {
		port, err := strconv.ParseUint(m[2], 10, 16)
		c.Host, c.Port, c.Wait, c.Looks = m[1], uint16(port), portWait, looks(m[6])
		if m[5] != "" {
			seconds, _ := strconv.Atoi(m[5])
			c.Wait = time.Duration(seconds) * time.Second
		}
		if m[3] != "" {
			c.Path = cmp.Or(m[4], "/")
		}
		ok = err == nil && port > 0 && (m[4] == "" || c.Path != "")
	}
	return c, ok && act(&c, words[then+1:])
}

// act reads what a condition leads to: a restart or a program.
func act(c *contract.MonitCondition, words []word) bool {
	if words[0].is("restart") {
		return true
	}
	if !words[0].is("exec") || len(words) < 2 {
		return false
	}
	c.Exec = contract.MonitProgram{Args: arguments(words[1].text), Timeout: defaultTimeout}
	return len(c.Exec.Args) > 0 && path.IsAbs(c.Exec.Args[0]) && (len(words) == 2 || !words[2].is("as"))
}

// units are bytes by the names of units; monit's own is the byte.
var units = map[string]uint64{"": 1, "b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}

func looks(text string) int {
	n, _ := strconv.Atoi(text)
	return max(n, 1)
}

// plain joins words, without those that mean nothing.
func plain(words []word) string {
	var all []string
	for _, w := range words {
		switch {
		case w.quoted:
			all = append(all, w.text)
		case !w.is(noiseWords...):
			all = append(all, strings.ToLower(w.text))
		}
	}
	return strings.Join(all, " ")
}

// written is a statement as it stands in the file, on one line.
func written(words []word) string {
	all := make([]string, len(words))
	for n, w := range words {
		if all[n] = w.text; w.quoted {
			all[n] = strconv.Quote(w.text)
		}
	}
	return cutAt(strings.Join(all, " "), 200)
}
