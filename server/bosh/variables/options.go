package variables

import (
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Options are how a value is made. Zero is the default of each.
type Options struct {
	Length         int  `json:",omitempty"` // of passwords
	ExcludeUpper   bool `json:",omitempty"`
	ExcludeLower   bool `json:",omitempty"`
	ExcludeNumber  bool `json:",omitempty"`
	IncludeSpecial bool `json:",omitempty"`

	CA               string   `json:",omitempty"` // the variable that signs; "": itself
	IsCA             bool     `json:",omitempty"`
	SelfSign         bool     `json:",omitempty"`
	CommonName       string   `json:",omitempty"`
	AlternativeNames []string `json:",omitempty"`
	KeyUsage         []string `json:",omitempty"`
	ExtendedKeyUsage []string `json:",omitempty"`
	DurationDays     int      `json:",omitempty"`
	Organization     string   `json:",omitempty"`
	OrganizationUnit string   `json:",omitempty"`
	Country          string   `json:",omitempty"`
	State            string   `json:",omitempty"`
	Locality         string   `json:",omitempty"`

	KeyLength  int    `json:",omitempty"`
	SSHComment string `json:",omitempty"`
}

// Problem is what is wrong with an option.
type Problem struct {
	Key, What string
	Ignored   bool // it has no effect on the type; nothing else is wrong
}

// setter takes an option's value; its error says what was expected instead.
type setter func(v any) error

// Names are the options of a type, or nil when there is no such type.
func Names(t Type) []string {
	o := &Options{}
	table := o.table(t)
	if table == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(table))
}

// Parse reads options. One that is a ((variable)) yet is passed over.
func Parse(t Type, options map[string]any) (Options, []Problem) {
	var o Options
	var problems []Problem
	table := o.table(t)
	for _, key := range slices.Sorted(maps.Keys(options)) {
		v := options[key]
		set, ok := table[key]
		switch s, _ := v.(string); {
		case v == nil, strings.Contains(s, "(("):
		case !ok:
			problems = append(problems, Problem{key, fmt.Sprintf("has no effect on type %s", t), true})
		default:
			if err := set(v); err != nil {
				problems = append(problems, Problem{key, err.Error(), false})
			}
		}
	}
	return o, problems
}

// table is the options of a type.
func (o *Options) table(t Type) map[string]setter {
	switch t {
	case Password:
		return map[string]setter{"length": number(&o.Length, 4, 1024), "exclude_upper": flag(&o.ExcludeUpper), "exclude_lower": flag(&o.ExcludeLower),
			"exclude_number": flag(&o.ExcludeNumber), "include_special": flag(&o.IncludeSpecial)}
	case Certificate:
		return map[string]setter{"ca": text(&o.CA), "is_ca": flag(&o.IsCA), "self_sign": flag(&o.SelfSign), "common_name": text(&o.CommonName),
			"alternative_names": texts(&o.AlternativeNames, nil), "key_usage": texts(&o.KeyUsage, slices.Sorted(maps.Keys(keyUsages))),
			"extended_key_usage": texts(&o.ExtendedKeyUsage, slices.Sorted(maps.Keys(extKeyUsages))), "duration": number(&o.DurationDays, 1, 36500),
			"organization": text(&o.Organization), "organization_unit": text(&o.OrganizationUnit), "country": text(&o.Country),
			"state": text(&o.State), "locality": text(&o.Locality), "key_length": keyLength(&o.KeyLength)}
	case RSA:
		return map[string]setter{"key_length": keyLength(&o.KeyLength)}
	case SSH:
		return map[string]setter{"key_length": keyLength(&o.KeyLength), "ssh_comment": text(&o.SSHComment)}
	}
	return nil
}

// keyUsages and extKeyUsages are CredHub's words.
var keyUsages = map[string]x509.KeyUsage{
	"digital_signature": x509.KeyUsageDigitalSignature, "non_repudiation": x509.KeyUsageContentCommitment, "key_encipherment": x509.KeyUsageKeyEncipherment,
	"data_encipherment": x509.KeyUsageDataEncipherment, "key_agreement": x509.KeyUsageKeyAgreement, "key_cert_sign": x509.KeyUsageCertSign,
	"crl_sign": x509.KeyUsageCRLSign, "encipher_only": x509.KeyUsageEncipherOnly, "decipher_only": x509.KeyUsageDecipherOnly,
}

var extKeyUsages = map[string]x509.ExtKeyUsage{
	"server_auth": x509.ExtKeyUsageServerAuth, "client_auth": x509.ExtKeyUsageClientAuth, "code_signing": x509.ExtKeyUsageCodeSigning,
	"email_protection": x509.ExtKeyUsageEmailProtection, "timestamping": x509.ExtKeyUsageTimeStamping,
}

func text(to *string) setter {
	return func(v any) error {
		switch x := v.(type) {
		case string:
			*to = x
		case int, int64, float64:
			*to = fmt.Sprint(x)
		default:
			return fmt.Errorf("expected text")
		}
		return nil
	}
}

func flag(to *bool) setter {
	return func(v any) error {
		b, ok := v.(bool)
		if !ok {
			return fmt.Errorf("expected true or false")
		}
		*to = b
		return nil
	}
}

func number(to *int, least, most int) setter {
	return func(v any) error {
		n, ok := v.(int)
		if s, isText := v.(string); isText {
			var err error
			n, err = strconv.Atoi(s)
			ok = err == nil
		}
		if !ok || n < least || n > most {
			return fmt.Errorf("expected a number from %d to %d", least, most)
		}
		*to = n
		return nil
	}
}

func keyLength(to *int) setter {
	return func(v any) error {
		n, ok := v.(int)
		if !ok || n != 2048 && n != 3072 && n != 4096 {
			return fmt.Errorf("expected 2048, 3072 or 4096")
		}
		*to = n
		return nil
	}
}

// maxTexts bounds lists, such as a certificate's names.
const maxTexts = 1000

// texts is a list of texts; known are those that there are, nil for any.
func texts(to *[]string, known []string) setter {
	return func(v any) error {
		list, ok := v.([]any)
		if !ok {
			return fmt.Errorf("expected a list of texts")
		}
		if len(list) > maxTexts {
			return fmt.Errorf("expected at most %d texts", maxTexts)
		}
		for _, item := range list {
			s, ok := item.(string)
			switch {
			case !ok:
				return fmt.Errorf("expected a list of texts")
			case strings.Contains(s, "(("):
				continue
			case known != nil && !slices.Contains(known, s):
				return fmt.Errorf("unknown %q; there are %s", s, strings.Join(known, ", "))
			}
			*to = append(*to, s)
		}
		return nil
	}
}
