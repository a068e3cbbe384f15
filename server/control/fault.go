package control

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"cupola/store"
	"cupola/store/cf"
)

// IsKind reports whether err is a cf.Error of the kind.
func IsKind(err error, kind cf.Kind) bool {
	var e *cf.Error
	return errors.As(err, &e) && e.Kind == kind
}

// Unprocessable turns a reference to what does not exist into a 422: a 404 is
// for the thing that is acted on.
func Unprocessable(err error, format string, args ...any) error {
	if IsKind(err, cf.ResourceNotFound) {
		return cf.Unprocessable(format, args...)
	}
	return err
}

// IfFound is err, but nil where it says that there is none.
func IfFound(err error) error {
	if store.IsNotFound(err) {
		return nil
	}
	return err
}

// OrElse is err, or another error when it is nil.
func OrElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// Must lists the messages of the checks that do not hold: a condition and its
// message by turns.
func Must(checks ...any) (messages []string) {
	for i := 0; i+1 < len(checks); i += 2 {
		if !checks[i].(bool) {
			messages = append(messages, fmt.Sprint(checks[i+1]))
		}
	}
	return messages
}

// Invalid makes one 422 of messages, joined as Cloud Controller joins them; nil
// of none.
func Invalid(messages []string) error {
	if len(messages) == 0 {
		return nil
	}
	return cf.Unprocessable("%s", strings.Join(messages, ", "))
}

// maxName is how long the name of an app, an org or a space may be, in characters.
const maxName = 255

// NameFaults are what is wrong with the name of an app, an org or a space, in the
// words of Cloud Controller's models (app/models/runtime). What its messages refuse
// comes this far from manifests alone.
func NameFaults(name string) []string {
	printable := name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
	return Must(strings.TrimSpace(name) != "", "name presence", printable, "name format",
		utf8.RuneCountInString(name) <= maxName, fmt.Sprintf("Name is too long (maximum is %d characters)", maxName))
}

// Inspect writes a list of strings as Cloud Controller's messages have it.
func Inspect(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = strconv.Quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
