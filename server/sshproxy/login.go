package sshproxy

import (
	"errors"
	"strconv"
	"strings"
	"unicode"
)

// login is the user name of a connection: which instance of which process.
type login struct {
	processGUID string
	index       int
}

// maxLogin bounds a user name.
const maxLogin = 300

var errLogin = errors.New("the user has to be cf:<process-guid>/<instance-index>, and the password a code of 'cf ssh-code'")

// parseLogin reads "cf:<process-guid>/<index>", the user name of Cloud Foundry's
// clients.
func parseLogin(user string) (login, error) { return parseUser("cf:", user) }

func parseUser(prefix, user string) (login, error) {
	name, ok := strings.CutPrefix(user, prefix)
	guid, digits, found := strings.Cut(name, "/")
	index, err := strconv.ParseUint(digits, 10, 31)
	if !ok || !found || guid == "" || err != nil || len(user) > maxLogin || printable(guid) != guid {
		return login{}, errLogin
	}
	return login{processGUID: guid, index: int(index)}, nil
}

// printable is what of a stranger's text a log may show.
func printable(text string) string {
	text = text[:min(len(text), maxLogin)]
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsGraphic(r) {
			return '?'
		}
		return r
	}, text)
}
