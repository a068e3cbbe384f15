package drain

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Message is a line of an app's log.
type Message struct {
	AppGUID  string
	Instance string
	Tags     map[string]string // "source_type": "APP/PROC/WEB", …
	At       time.Time
	Text     []byte
	Err      bool
}

// The priorities of RFC 5424: facility user, severity informational or error.
const (
	priorityOut = 14
	priorityErr = 11
)

// enterprise is the number under which Cloud Foundry keeps its structured data.
const enterprise = "tags@47450"

// timeLayout has microseconds, as the syslog agent writes them.
const timeLayout = "2006-01-02T15:04:05.000000-07:00"

// frame writes a message as RFC 5424 has it, with its length before it.
func frame(host string, m Message) []byte {
	var b bytes.Buffer
	priority := priorityOut
	if m.Err {
		priority = priorityErr
	}
	fmt.Fprintf(&b, "<%d>1 %s %s %s %s - %s ", priority, m.At.Format(timeLayout), field(host, 255), field(m.AppGUID, 48), field(process(m), 128), structured(m))
	for _, c := range m.Text {
		if c != 0 {
			b.WriteByte(c)
		}
	}
	b.WriteByte('\n')
	return append([]byte(strconv.Itoa(b.Len())+" "), b.Bytes()...)
}

// process is the PROCID: [APP/PROC/WEB/0].
func process(m Message) string {
	source := strings.ToUpper(strings.ReplaceAll(m.Tags["source_type"], " ", "-"))
	if source == "" {
		return "-"
	}
	return "[" + source + "/" + m.Instance + "]"
}

// field makes a header field: printable ASCII without spaces, "-" for none.
func field(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return -1
		}
		return r
	}, s)
	if s == "" {
		return "-"
	}
	return s[:min(len(s), limit)]
}

var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `]`, `\]`)

// structured is the message's tags as structured data.
func structured(m Message) string {
	tags := maps.Clone(m.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	tags["app_id"] = m.AppGUID
	tags["instance_id"] = m.Instance
	var b strings.Builder
	b.WriteString("[" + enterprise)
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		if key := paramName(name); key != "" {
			fmt.Fprintf(&b, ` %s="%s"`, key, quoted.Replace(strings.ToValidUTF8(tags[name], "\uFFFD")))
		}
	}
	b.WriteByte(']')
	return b.String()
}

// paramName leaves of a name what RFC 5424 lets a parameter have.
func paramName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || strings.ContainsRune(`="]`, r) {
			return -1
		}
		return r
	}, s)
	return s[:min(len(s), 32)]
}

// hostname is the HOSTNAME of an app's messages: org.space.app, each part as
// the syslog agent makes it.
func hostname(org, space, app string) string {
	return hostPart(org) + "." + hostPart(space) + "." + hostPart(app)
}

func hostPart(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return -1
	}, s)
	return strings.TrimRight(s[:min(len(s), 63)], "-")
}
