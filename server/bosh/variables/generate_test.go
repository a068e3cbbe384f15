package variables

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func certificate(name string, options map[string]any) Declared {
	o, problems := Parse(Certificate, options)
	if problems != nil {
		panic(problems)
	}
	return Declared{Name: name, Type: Certificate, Options: o}
}

func generate(t *testing.T, r Request) map[string]Value {
	t.Helper()
	r.Now, r.Rand = now, rand.Reader
	values, err := Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// chain is a CA, one that it signs and a server's certificate, in an order
// that does not work.
var chain = []Declared{
	certificate("server", map[string]any{"ca": "middle", "common_name": "nats.example.com", "alternative_names": []any{"10.0.0.1", "::1", "*.nats"},
		"extended_key_usage": []any{"server_auth"}, "key_usage": []any{"digital_signature"}, "duration": 10, "organization": "Foundry", "country": "DE"}),
	certificate("middle", map[string]any{"ca": "root", "is_ca": true, "common_name": "middle"}),
	certificate("root", map[string]any{"is_ca": true, "common_name": "root"}),
}

func TestCertificatesAreSignedThroughTheirChain(t *testing.T) {
	values := generate(t, Request{Declared: chain})
	parsed := map[string]*x509.Certificate{}
	for name, v := range values {
		c, err := parseCertificate(v.Fields["certificate"])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := tls.X509KeyPair([]byte(v.Fields["certificate"]), []byte(v.Fields["private_key"])); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		parsed[name] = c
	}
	roots, middles := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(parsed["root"])
	middles.AddCert(parsed["middle"])
	for _, host := range []string{"nats.example.com", "x.nats", "10.0.0.1", "::1"} {
		_, err := parsed["server"].Verify(x509.VerifyOptions{DNSName: host, Roots: roots, Intermediates: middles, CurrentTime: now.AddDate(0, 0, 9)})
		if err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, o := range []x509.VerifyOptions{
		{CurrentTime: now.AddDate(0, 0, 11)}, // its duration is over
		{CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
		{CurrentTime: now, DNSName: "other"},
	} {
		o.Roots, o.Intermediates = roots, middles
		if _, err := parsed["server"].Verify(o); err == nil {
			t.Errorf("%+v: it was verified", o)
		}
	}
	server := parsed["server"]
	if server.KeyUsage != x509.KeyUsageDigitalSignature || server.Subject.String() != "CN=nats.example.com,O=Foundry,C=DE" {
		t.Errorf("got usage %d, subject %s", server.KeyUsage, server.Subject)
	}
	if values["server"].Fields["ca"] != values["middle"].Fields["certificate"] || values["root"].Fields["ca"] != values["root"].Fields["certificate"] {
		t.Error("ca is not what signed")
	}
	if got := parsed["root"].NotAfter.Sub(now); got != 365*24*time.Hour {
		t.Errorf("got a root for %v", got)
	}
}

func TestKeysAndPasswords(t *testing.T) {
	options, _ := Parse(Password, map[string]any{"length": 20, "exclude_upper": true, "exclude_number": true})
	values := generate(t, Request{Declared: []Declared{{Name: "p", Type: Password}, {Name: "q", Type: Password, Options: options}, {Name: "r", Type: RSA}, {Name: "s", Type: SSH}}})
	p, _ := values["p"].Interpolated().(string)
	if len(p) != 64 || strings.Trim(p, upper+lower+digits) != "" {
		t.Errorf("got %q", p)
	}
	if q, _ := values["q"].Interpolated().(string); len(q) != 20 || strings.Trim(q, lower) != "" {
		t.Errorf("got %q", q)
	}
	if _, err := parseKey(values["r"].Fields["private_key"]); err != nil || !strings.HasPrefix(values["r"].Fields["public_key"], "-----BEGIN PUBLIC KEY-----\n") {
		t.Errorf("got %v, %v", err, values["r"])
	}
	signer, err := ssh.ParsePrivateKey([]byte(values["s"].Fields["private_key"]))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := values["s"].Fields["public_key"], string(ssh.MarshalAuthorizedKey(signer.PublicKey())); got != want {
		t.Errorf("got %s; want %s", got, want)
	}
	if got, want := values["s"].Fields["public_key_fingerprint"], ssh.FingerprintLegacyMD5(signer.PublicKey()); got != want {
		t.Errorf("got %s; want %s", got, want)
	}
	for _, typ := range []Type{RSA, SSH} {
		var fields []string
		for f := range values[map[Type]string{RSA: "r", SSH: "s"}[typ]].Interpolated().(map[string]any) {
			fields = append(fields, f)
		}
		slices.Sort(fields)
		if diff := cmp.Diff(Fields[typ], fields); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", typ, diff)
		}
	}
}

// TestWhatIsKept has who is made again, for every mode and change.
func TestWhatIsKept(t *testing.T) {
	before := generate(t, Request{Declared: chain})
	given := map[string]Value{}
	for name, v := range before {
		given[name] = Value{Fields: v.Fields}
	}
	modes := func(mode Mode) []Declared {
		all := slices.Clone(chain)
		for i := range all {
			all[i].Mode = mode
		}
		return all
	}
	longer := func(mode Mode) []Declared {
		all := modes(mode)
		all[1].Options.DurationDays = 700
		return all
	}
	other := maps.Clone(before)
	other["root"] = Value{Fields: generate(t, Request{Declared: chain[2:]})["root"].Fields}
	for name, c := range map[string]struct {
		declared []Declared
		existing map[string]Value
		rotate   []string
		want     []string
	}{
		"nothing is changed":           {chain, before, nil, nil},
		"options, and nobody minds":    {longer(NoOverwrite), before, nil, nil},
		"options converge":             {longer(Converge), before, nil, []string{"middle", "server"}},
		"options, but it was given":    {longer(Converge), given, nil, nil},
		"always":                       {longer(Overwrite), before, nil, []string{"middle", "root", "server"}},
		"a rotated leaf":               {chain, before, []string{"server"}, []string{"server"}},
		"a rotated root takes all":     {chain, before, []string{"root"}, []string{"middle", "root", "server"}},
		"a rotated root, others given": {chain, given, []string{"root"}, []string{"root"}},
		"another root was given":       {longer(NoOverwrite), other, nil, nil},
		"another, and they converge":   {modes(Converge), other, nil, []string{"middle", "server"}},
	} {
		r := Request{Declared: c.declared, Existing: c.existing, Rotate: c.rotate}
		after := generate(t, r)
		var generated []string
		for name, v := range after {
			if !maps.Equal(v.Fields, c.existing[name].Fields) {
				generated = append(generated, name)
			}
		}
		slices.Sort(generated)
		order, err := Order(r.Declared)
		if said := slices.Sorted(maps.Keys(r.toGenerate(order))); err != nil || !slices.Equal(said, generated) {
			t.Errorf("%s: toGenerate returns %v, %v; generated were %v", name, said, err, generated)
		}
		if diff := cmp.Diff(c.want, generated); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", name, diff)
		}
	}
}

func TestWhatCannotBeMade(t *testing.T) {
	leaf := certificate("leaf", map[string]any{"ca": "root", "common_name": "x"})
	root := chain[2]
	notCA := generate(t, Request{Declared: []Declared{certificate("root", map[string]any{"common_name": "x"})}})
	for _, c := range []struct {
		declared []Declared
		existing map[string]Value
		want     string
	}{
		{[]Declared{leaf}, nil, `variable "leaf": its ca "root" is neither declared nor given`},
		{[]Declared{leaf}, notCA, `variable "leaf": its ca "root" is not a CA: give it is_ca`},
		{[]Declared{leaf}, map[string]Value{"root": {Fields: map[string]string{"value": "x"}}}, `variable "leaf": its ca "root": it has no certificate`},
		{[]Declared{root, root}, nil, `the variable "root" is declared twice`},
		{[]Declared{certificate("a", map[string]any{"ca": "b"}), certificate("b", map[string]any{"ca": "a"})}, nil, "Detected recursion: a is signed by b is signed by a"},
		{[]Declared{certificate("a", map[string]any{"ca": "a"})}, nil, "Detected recursion: a is signed by a"},
		{[]Declared{{Name: "x", Type: "tls"}}, nil, `variable "x": unsupported variable type "tls"`},
		{[]Declared{{Name: "x", Type: Password, Options: Options{ExcludeLower: true, ExcludeUpper: true, ExcludeNumber: true}}}, nil, `variable "x": its options leave no letters to make it of`},
	} {
		_, err := Generate(t.Context(), Request{Declared: c.declared, Existing: c.existing, Now: now, Rand: rand.Reader})
		if err == nil || err.Error() != c.want {
			t.Errorf("got %v; want %s", err, c.want)
		}
	}
	_, err := Generate(t.Context(), Request{Declared: chain, Rotate: []string{"root", "rooot"}, Now: now, Rand: rand.Reader})
	if want := `cannot rotate variable "rooot": it is not declared (did you mean "root"?)`; err == nil || err.Error() != want {
		t.Errorf("got %v; want %s", err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Generate(ctx, Request{Declared: chain, Now: now, Rand: rand.Reader}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		t       Type
		options map[string]any
		want    []Problem
	}{
		{Password, map[string]any{"length": 3}, []Problem{{"length", "expected a number from 4 to 1024", false}}},
		{Password, map[string]any{"length": "((n))", "is_ca": nil}, nil},
		{Password, map[string]any{"is_ca": true}, []Problem{{"is_ca", "has no effect on type password", true}}},
		{Certificate, map[string]any{"is_ca": "yes", "duration": "365"}, []Problem{{"is_ca", "expected true or false", false}}},
		{Certificate, map[string]any{"alternative_names": "a"}, []Problem{{"alternative_names", "expected a list of texts", false}}},
		{Certificate, map[string]any{"common_name": []any{}, "key_length": 1024}, []Problem{{"common_name", "expected text", false}, {"key_length", "expected 2048, 3072 or 4096", false}}},
	} {
		_, problems := Parse(c.t, c.options)
		if diff := cmp.Diff(c.want, problems); diff != "" {
			t.Errorf("%v: (-want +got):\n%s", c.options, diff)
		}
	}
	if Names("tls") != nil || !slices.Contains(Names(SSH), "key_length") {
		t.Error("the options of types are others")
	}
}

func TestEveryLetterIsAsLikely(t *testing.T) {
	const n = 100_000
	s, err := pick("abc", n, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, letter := range "abc" {
		if got := strings.Count(s, string(letter)); got < n/3-n/50 || got > n/3+n/50 {
			t.Errorf("%c: got %d of %d", letter, got, n)
		}
	}
}

// BenchmarkGenerate makes what cf-deployment declares: 92 certificates and 38
// passwords.
func BenchmarkGenerate(b *testing.B) {
	declared := []Declared{certificate("ca", map[string]any{"is_ca": true, "common_name": "ca"})}
	for i := range 129 {
		d := certificate("c"+strconv.Itoa(i), map[string]any{"ca": "ca", "common_name": "x"})
		if i >= 91 {
			d = Declared{Name: d.Name, Type: Password}
		}
		declared = append(declared, d)
	}
	for b.Loop() {
		if _, err := Generate(b.Context(), Request{Declared: declared, Now: now, Rand: rand.Reader}); err != nil {
			b.Fatal(err)
		}
	}
}
