package uaa

import (
	"fmt"
	"net/http"
	"strings"
	"unicode"
)

// maxPassword is how many bytes of a password bcrypt uses.
const maxPassword = 72

// PasswordPolicy is what new passwords must have. The zero value is UAA's
// default: anything but nothing.
type PasswordPolicy struct {
	MinLength int // in characters
	Upper     int // that many upper-case letters at least, and so on
	Lower     int
	Digits    int
	Special   int // neither letters nor digits
}

// ParsePolicy reads a policy of names and numbers: min-length, upper, lower,
// digits, special.
func ParsePolicy(m map[string]int) (p PasswordPolicy, err error) {
	fields := map[string]*int{"min-length": &p.MinLength, "upper": &p.Upper, "lower": &p.Lower, "digits": &p.Digits, "special": &p.Special}
	for name, n := range m {
		field := fields[name]
		if field == nil {
			return p, fmt.Errorf("%q is none of min-length, upper, lower, digits, special", name)
		}
		if n < 0 || n > maxPassword {
			return p, fmt.Errorf("%s=%d is not between 0 and %d", name, n, maxPassword)
		}
		*field = n
	}
	if p.Upper+p.Lower+p.Digits+p.Special > maxPassword {
		return p, fmt.Errorf("no password of %d bytes has all that", maxPassword)
	}
	return p, nil
}

// check says all that a password lacks, in UAA's words.
func (p PasswordPolicy) check(password string) error {
	var faults []string
	if least := max(p.MinLength, 1); len([]rune(password)) < least {
		faults = append(faults, fmt.Sprintf("Password must be at least %d characters in length.", least))
	}
	if len(password) > maxPassword {
		faults = append(faults, fmt.Sprintf("Password must be no more than %d bytes in length.", maxPassword))
	}
	for _, rule := range []struct {
		least int
		what  string
		is    func(rune) bool
	}{
		{p.Upper, "uppercase", unicode.IsUpper},
		{p.Lower, "lowercase", unicode.IsLower},
		{p.Digits, "digit", unicode.IsDigit},
		{p.Special, "special", func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }},
	} {
		if count(password, rule.is) < rule.least {
			faults = append(faults, fmt.Sprintf("Password must contain at least %d %s characters.", rule.least, rule.what))
		}
	}
	if len(faults) > 0 {
		// UAA: UaaPasswordPolicyValidator, InvalidPasswordException
		return refuse(http.StatusBadRequest, "invalid_password", "%s", strings.Join(faults, ","))
	}
	return nil
}

func count(s string, is func(rune) bool) (n int) {
	for _, r := range s {
		if is(r) {
			n++
		}
	}
	return n
}
