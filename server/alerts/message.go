package alerts

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cupola/store/cf"
)

// How long, in bytes, what users chose and apps printed may be in a message.
const (
	maxName = 300
	maxText = 600
)

// maxEvents bounds the events of a message. Others follow in the next one.
const maxEvents = 50

// printed keeps text from steering terminals and headers of mail.
func printed(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return ' '
}

// clean is a text on one line, of at most so many bytes.
func clean(text string, most int) string {
	text = strings.TrimSpace(strings.Map(printed, strings.ToValidUTF8(text, "?")))
	if len(text) <= most {
		return text
	}
	cut := most - len("…")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// message is what one target is sent at once.
type message struct {
	domain, console string
	events          []cf.AlertEvent
}

// subject is the message in one line.
func (m message) subject() string {
	kinds := []struct{ kind, text string }{{cf.AlertEventFiring, "firing"}, {cf.AlertEventRepeated, "still firing"}, {cf.AlertEventResolved, "resolved"}, {cf.AlertEventTest, "test"}}
	var parts []string
	for _, k := range kinds {
		n := 0
		for _, e := range m.events {
			if e.Kind == k.kind {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, k.text))
		}
	}
	text := "cupola " + m.domain + ": " + strings.Join(parts, ", ")
	if first := m.events[0]; len(m.events) == 1 {
		text += ": " + first.Rule + " " + first.Name
	}
	return clean(text, maxName)
}

// headline is the first line about an event.
func headline(e cf.AlertEvent) string {
	switch e.Kind {
	case cf.AlertEventResolved:
		return "Resolved: " + e.Rule + ", " + e.Name
	case cf.AlertEventRepeated:
		return "Still firing (" + string(e.Severity) + "): " + e.Rule + ", " + e.Name
	case cf.AlertEventTest:
		return "Test: " + e.Name
	}
	return "Firing (" + string(e.Severity) + "): " + e.Rule + ", " + e.Name
}

// about is the rest about an event, in lines.
func about(e cf.AlertEvent) (lines []string) {
	if e.Kind == cf.AlertEventResolved {
		return []string{"It began at " + e.Since.Format(time.RFC3339) + " and was over at " + e.At.Format(time.RFC3339) + "."}
	}
	lines = append(lines, e.Text)
	if e.Kind == cf.AlertEventRepeated {
		lines = append(lines, "It began at "+e.Since.Format(time.RFC3339)+".")
	}
	if e.Mend != "" {
		lines = append(lines, "See: "+e.Mend)
	}
	return lines
}

// text is the message for people, with headlines marked by bold.
func (m message) text(bold func(string) string, escape func(string) string, most int) (text string, taken int) {
	for _, e := range m.events {
		part := bold(escape(headline(e))) + "\n"
		for _, line := range about(e) {
			part += escape(line) + "\n"
		}
		if taken > 0 && len(text)+1+len(part) > most {
			break
		}
		if taken > 0 {
			text += "\n"
		}
		text, taken = text+part, taken+1
	}
	return text, taken
}

func same(text string) string { return text }

// The bytes that the chats take of a text.
const (
	maxSlack   = 30_000
	maxDiscord = 1990 // characters; bytes are as many or more
)

// The forms of webhooks.
const (
	FormJSON    = "json"
	FormSlack   = "slack"
	FormDiscord = "discord"
)

// body is the message in a webhook's form, and how many events it holds.
func (m message) body(form string) (body []byte, taken int, err error) {
	var v any
	switch form {
	case FormSlack:
		escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace // mentions no user
		text, n := m.text(func(s string) string { return "*" + strings.ReplaceAll(s, "*", "·") + "*" }, escape, maxSlack)
		v, taken = map[string]any{"text": text}, n
	case FormDiscord:
		text, n := m.text(func(s string) string { return "**" + s + "**" }, escapeMarkdown, maxDiscord)
		v, taken = map[string]any{"content": clip(text, maxDiscord), "allowed_mentions": map[string][]string{"parse": {}}}, n
	default:
		text, _ := m.text(same, same, 1<<20)
		v, taken = map[string]any{"version": 1, "sender": "cupola", "domain": m.domain, "console": m.console, "subject": m.subject(), "text": text, "events": m.events}, len(m.events)
	}
	body, err = json.Marshal(v)
	return body, taken, err
}

// escapeMarkdown keeps what users chose from being read as markdown.
func escapeMarkdown(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("\\*_~`|>#[]()", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// clip cuts a text of more lines.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// formOf is the form that a webhook's address asks for.
func formOf(host, path string) string {
	switch {
	case host == "hooks.slack.com":
		return FormSlack
	case (host == "discord.com" || host == "discordapp.com") && strings.HasPrefix(path, "/api/webhooks/"):
		if strings.HasSuffix(path, "/slack") { // Discord understands that, too
			return FormSlack
		}
		return FormDiscord
	}
	return FormJSON
}
