package static

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/crypto/bcrypt"
)

// authorized reports whether the request names a user and the password, when
// the site has any.
func (h *handler) authorized(r *http.Request) bool {
	if len(h.config.Passwords) == 0 {
		return true
	}
	user, password, ok := r.BasicAuth()
	if !ok {
		return false
	}
	hash, ok := h.config.Passwords[user]
	return ok && matches(hash, password)
}

// matches checks a password against an htpasswd hash: bcrypt, apr1 (what
// htpasswd makes by default), {SHA}, {SSHA} and {PLAIN}, as nginx does.
func matches(hash, password string) bool {
	switch {
	case strings.HasPrefix(hash, "$2"):
		return bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil
	case strings.HasPrefix(hash, "$apr1$"):
		salt, _, _ := strings.Cut(strings.TrimPrefix(hash, "$apr1$"), "$")
		return equal(apr1(password, salt), hash)
	case strings.HasPrefix(hash, "{SHA}"):
		sum := sha1.Sum([]byte(password))
		return equal(base64.StdEncoding.EncodeToString(sum[:]), hash[len("{SHA}"):])
	case strings.HasPrefix(hash, "{SSHA}"):
		return matchesSalted(hash[len("{SSHA}"):], password)
	case strings.HasPrefix(hash, "{PLAIN}"):
		return equal(password, hash[len("{PLAIN}"):])
	}
	return false
}

// Supported reports whether matches knows the kind of hash.
func Supported(hash string) bool {
	return slices.ContainsFunc([]string{"$2", "$apr1$", "{SHA}", "{SSHA}", "{PLAIN}"}, func(prefix string) bool { return strings.HasPrefix(hash, prefix) })
}

func matchesSalted(encoded, password string) bool {
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(raw) < sha1.Size {
		return false
	}
	sum := sha1.Sum(append([]byte(password), raw[sha1.Size:]...))
	return subtle.ConstantTimeCompare(sum[:], raw[:sha1.Size]) == 1
}

func equal(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

// apr1 is Apache's variant of the MD5 crypt: 1000 rounds, its own magic.
func apr1(password, salt string) string {
	const magic = "$apr1$"
	salt = salt[:min(len(salt), 8)]
	inner := md5.Sum([]byte(password + salt + password))
	d := md5.New()
	d.Write([]byte(password + magic + salt))
	for n := len(password); n > 0; n -= md5.Size {
		d.Write(inner[:min(n, md5.Size)])
	}
	for n := len(password); n > 0; n >>= 1 {
		if n&1 == 1 {
			d.Write([]byte{0})
		} else {
			d.Write([]byte{password[0]})
		}
	}
	sum := d.Sum(nil)
	for i := range 1000 {
		sum = apr1Round(i, sum, password, salt)
	}
	return magic + salt + "$" + apr1Encode(sum)
}

func apr1Round(i int, sum []byte, password, salt string) []byte {
	first, last := string(sum), password
	if i&1 == 1 {
		first, last = last, first
	}
	text := first
	if i%3 != 0 {
		text += salt
	}
	if i%7 != 0 {
		text += password
	}
	next := md5.Sum([]byte(text + last))
	return next[:]
}

// apr1Encode writes the bytes in the crypt's order, six bits a character.
func apr1Encode(sum []byte) string {
	const alphabet = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	var b strings.Builder
	put := func(v uint32, n int) {
		for range n {
			b.WriteByte(alphabet[v&0x3f])
			v >>= 6
		}
	}
	for i := range 5 {
		last := i + 12
		if i == 4 {
			last = 5
		}
		put(uint32(sum[i])<<16|uint32(sum[i+6])<<8|uint32(sum[last]), 4)
	}
	put(uint32(sum[11]), 2)
	return b.String()
}
