package logcache

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"cupola/runtime/pattern"
)

// Level is how serious a line says that it is.
type Level int

// The levels. NoLevel is of a line that says nothing of it.
const (
	NoLevel Level = iota
	Debug
	Info
	Warn
	Error
)

var levelNames = map[string]Level{"debug": Debug, "info": Info, "warn": Warn, "error": Error}

// parseLevel reads the name of a level; "" is NoLevel.
func parseLevel(name string) (Level, error) {
	l, ok := levelNames[name]
	if !ok && name != "" {
		return 0, fmt.Errorf("level must be debug, info, warn or error, not %q", name)
	}
	return l, nil
}

// Lines have levels as fields, of JSON or of logfmt, in words or in the numbers of bunyan and pino; or as
// words in capitals near their beginning.
var levelField = pattern.Lazy(`(?i)"?\b(?:level|severity|lvl)"?\s*[:=]\s*"?([a-z]+|[1-6]0\b)`)

// levelWords are the first letters of the words for levels, in lower case.
var levelWords = []struct {
	begins string
	level  Level
}{
	{"tra", Debug}, {"deb", Debug}, {"db", Debug}, {"inf", Info}, {"not", Info}, {"war", Warn}, {"err", Error}, {"sev", Error}, {"cri", Error},
	{"ale", Error}, {"eme", Error}, {"fat", Error}, {"pan", Error}, {"10", Debug}, {"20", Debug}, {"30", Info}, {"40", Warn}, {"50", Error}, {"60", Error},
}

var levelCapitals = map[string]Level{
	"TRACE": Debug, "DEBUG": Debug, "INFO": Info, "NOTICE": Info, "WARN": Warn, "WARNING": Warn, "ERROR": Error, "ERR": Error, "SEVERE": Error,
	"CRITICAL": Error, "CRIT": Error, "ALERT": Error, "EMERG": Error, "FATAL": Error, "PANIC": Error,
}

// levelWithin is how far from its beginning a line may have its level as a word.
const levelWithin = 120

// levelOf is the level that a line says it has.
func levelOf(line []byte) Level {
	if mayHaveField(line) {
		if m := levelField().FindSubmatch(line); m != nil {
			return levelNamed(strings.ToLower(string(m[1])))
		}
	}
	return levelInCapitals(line[:min(len(line), levelWithin)])
}

// mayHaveField is quick: a search asks it of millions of lines.
func mayHaveField(line []byte) bool {
	for _, name := range []string{"level", "Level", "LEVEL", "everity", "EVERITY", "lvl", "LVL"} {
		if bytes.Contains(line, []byte(name)) {
			return true
		}
	}
	return false
}

func levelNamed(word string) Level {
	for _, w := range levelWords {
		if strings.HasPrefix(word, w.begins) {
			return w.level
		}
	}
	return NoLevel
}

// levelInCapitals is that of the first word in capitals that names one.
func levelInCapitals(line []byte) Level {
	for word := range bytes.FieldsFuncSeq(line, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if level, ok := levelCapitals[string(word)]; ok {
			return level
		}
	}
	return NoLevel
}
