package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
)

// WriteJSON writes v as JSON for people.
func WriteJSON(w io.Writer, v any) error {
	j := json.NewEncoder(w)
	j.SetIndent("", "  ")
	j.SetEscapeHTML(false)
	return j.Encode(v)
}

// Counted is a number of things: "1 check", "2 checks".
func Counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// BytesText writes a number of bytes for people: "34 kB", "1.2 MB".
func BytesText(n int64) string {
	v, unit := float64(n), "B"
	for _, u := range []string{"kB", "MB", "GB"} {
		if v < 1000 {
			break
		}
		v, unit = v/1000, u
	}
	if v >= 10 || unit == "B" {
		return fmt.Sprintf("%.0f %s", v, unit)
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}

// When is a time for people; "-" for none.
func When(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// Printed keeps what an image says from steering the terminal.
func Printed(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return '?'
}

// Printable is a text as Printed keeps it.
func Printable(text string) string { return strings.Map(Printed, text) }
