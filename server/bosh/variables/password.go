package variables

import (
	"errors"
	"io"
)

// defaultLength is cf-operator's; the letters are its too.
const defaultLength = 64

const (
	upper   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	lower   = "abcdefghijklmnopqrstuvwxyz"
	digits  = "0123456789"
	special = "$!@#%^&*-_+=?"
)

func password(o Options, random io.Reader) (string, error) {
	letters := ""
	for _, set := range []struct {
		letters string
		without bool
	}{{upper, o.ExcludeUpper}, {lower, o.ExcludeLower}, {digits, o.ExcludeNumber}, {special, !o.IncludeSpecial}} {
		if !set.without {
			letters += set.letters
		}
	}
	if letters == "" {
		return "", errors.New("its options leave no letters to make it of")
	}
	length := o.Length
	if length == 0 {
		length = defaultLength
	}
	return pick(letters, length, random)
}

// pick draws letters, each as likely as any other: bytes that would favour
// some are dropped.
func pick(letters string, n int, random io.Reader) (string, error) {
	fair := 256 - 256%len(letters)
	out, b := make([]byte, 0, n), make([]byte, 64)
	for len(out) < n {
		if _, err := io.ReadFull(random, b); err != nil {
			return "", err
		}
		for _, x := range b {
			if int(x) < fair && len(out) < n {
				out = append(out, letters[int(x)%len(letters)])
			}
		}
	}
	return string(out), nil
}
