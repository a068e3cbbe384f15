package launch

import "strings"

// plainWords splits a command that every shell takes for the same plain words
// and reports whether it is one. Only a program given by a path qualifies,
// since a bare name may be a shell's builtin; $PORT, $HOME and $DEPS_DIR are
// replaced when their values are plain too. Saving the shell saves a
// millisecond of each start.
func plainWords(command string, env []string) ([]string, bool) {
	for i := range len(command) {
		if !isPlainByte(command[i]) && strings.IndexByte(" \t${}", command[i]) < 0 {
			return nil, false
		}
	}
	words := strings.Fields(command)
	if len(words) == 0 {
		return nil, false
	}
	for i, w := range words {
		for _, name := range []string{"PORT", "HOME", "DEPS_DIR"} {
			if value := get(env, name); isPlain(value) {
				w = replaceVariable(w, name, value)
			}
		}
		if !isPlain(w) {
			return nil, false
		}
		words[i] = w
	}
	return words, strings.Contains(words[0], "/") && !strings.Contains(words[0], "=")
}

// replaceVariable replaces ${name}, and $name at the end of the word or
// before a character that cannot continue a name.
func replaceVariable(word, name, value string) string {
	word = strings.ReplaceAll(word, "${"+name+"}", value)
	var b strings.Builder
	for {
		before, after, found := strings.Cut(word, "$"+name)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if after != "" && (after[0] == '_' || isAlphanumeric(after[0])) {
			b.WriteString("$" + name)
		} else {
			b.WriteString(value)
		}
		word = after
	}
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// isPlain reports whether a shell takes s as it stands, unquoted.
func isPlain(s string) bool {
	for i := range len(s) {
		if !isPlainByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func isPlainByte(c byte) bool {
	return isAlphanumeric(c) || strings.IndexByte("_-./:=@%+,", c) >= 0
}
