// Package variables makes the values that deployments declare: passwords,
// certificates, RSA and SSH keys, with BOSH's options. It decides which of those
// that exist are kept. It is pure but for the randomness it is given and the
// one that Go's keys are made from.
package variables

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// Type is what a variable is.
type Type string

// The types.
const (
	Password    Type = "password"
	Certificate Type = "certificate"
	RSA         Type = "rsa"
	SSH         Type = "ssh"
)

// Fields are those that a value of each type has in references, like
// ((tls.ca)); a password has none.
var Fields = map[Type][]string{
	Password:    {},
	Certificate: {"ca", "certificate", "private_key"},
	RSA:         {"private_key", "public_key"},
	SSH:         {"private_key", "public_key", "public_key_fingerprint"},
}

// Mode says when a value that exists is made again.
type Mode string

// BOSH's modes.
const (
	NoOverwrite Mode = "no-overwrite" // never
	Overwrite   Mode = "overwrite"    // always
	Converge    Mode = "converge"     // when its options are others
)

// Modes are all modes.
var Modes = []Mode{NoOverwrite, Overwrite, Converge}

// Declared is a variable that a deployment declares.
type Declared struct {
	Name    string
	Type    Type
	Options Options
	Mode    Mode // NoOverwrite when ""
}

// Value is what a variable stands for.
type Value struct {
	// Fields are "password", or those of its type; of one that a user gave
	// they may be others.
	Fields map[string]string
	// Made is the digest of what it was made from, "" when a user gave it:
	// then it is kept, whatever its options are.
	Made string
}

// Interpolated is the value as references see it: a text, or a map of texts.
func (v Value) Interpolated() any {
	if p, ok := v.Fields["password"]; ok && len(v.Fields) == 1 {
		return p
	}
	m := make(map[string]any, len(v.Fields))
	for k, f := range v.Fields {
		m[k] = f
	}
	return m
}

// digest is the same for the same type and options.
func (d Declared) digest() string {
	o := d.Options
	o.KeyUsage = slices.Sorted(slices.Values(o.KeyUsage))
	o.ExtendedKeyUsage = slices.Sorted(slices.Values(o.ExtendedKeyUsage))
	text, err := json.Marshal(struct {
		Type    Type
		Options Options
	}{d.Type, o})
	if err != nil {
		panic(err) // texts, numbers and booleans
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
