package variables

import (
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"slices"
	"time"

	"cupola/runtime/pattern"
)

// defaultDays is cf-operator's and CredHub's.
const defaultDays = 365

func (g *generator) certificate(d Declared) (map[string]string, error) {
	o := d.Options
	template, err := certificateTemplate(o, g.Now, g.Rand)
	if err != nil {
		return nil, err
	}
	key := g.keys[d.Name]
	parent, signs, ca := template, key, ""
	if o.CA != "" && !o.SelfSign {
		if parent, signs, err = g.authority(o.CA); err != nil {
			return nil, err
		}
		ca = block("CERTIFICATE", parent.Raw)
	}
	der, err := x509.CreateCertificate(g.Rand, template, parent, &key.PublicKey, signs)
	if err != nil {
		return nil, err
	}
	certificate := block("CERTIFICATE", der)
	if ca == "" {
		ca = certificate
	}
	return map[string]string{"certificate": certificate, "private_key": encodeKey(key), "ca": ca}, nil
}

// authority is the certificate and the key of the variable that signs.
func (g *generator) authority(name string) (*x509.Certificate, *rsa.PrivateKey, error) {
	v, ok := g.signer(name)
	if !ok {
		return nil, nil, fmt.Errorf("its ca %q is neither declared nor given", name)
	}
	certificate, err := parseCertificate(v.Fields["certificate"])
	if err != nil {
		return nil, nil, fmt.Errorf("its ca %q: %w", name, err)
	}
	if !certificate.IsCA {
		return nil, nil, fmt.Errorf("its ca %q is not a CA: give it is_ca", name)
	}
	key, err := parseKey(v.Fields["private_key"])
	if err != nil {
		return nil, nil, fmt.Errorf("its ca %q: %w", name, err)
	}
	return certificate, key, nil
}

func parseCertificate(text string) (*x509.Certificate, error) {
	b, _ := pem.Decode([]byte(text))
	if b == nil || b.Type != "CERTIFICATE" {
		return nil, errors.New("it has no certificate")
	}
	return x509.ParseCertificate(b.Bytes)
}

func parseKey(text string) (*rsa.PrivateKey, error) {
	b, _ := pem.Decode([]byte(text))
	if b == nil {
		return nil, errors.New("it has no private key")
	}
	if key, err := x509.ParsePKCS1PrivateKey(b.Bytes); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(b.Bytes)
	if err != nil {
		return nil, err
	}
	if r, ok := key.(*rsa.PrivateKey); ok {
		return r, nil
	}
	return nil, errors.New("its private key is not an RSA key")
}

func certificateTemplate(o Options, now time.Time, random io.Reader) (*x509.Certificate, error) {
	serial := make([]byte, 16)
	if _, err := io.ReadFull(random, serial); err != nil {
		return nil, err
	}
	serial[0] &= 0x7f // positive
	serial[15] |= 1   // and never zero
	days := o.DurationDays
	if days == 0 {
		days = defaultDays
	}
	c := &x509.Certificate{SerialNumber: new(big.Int).SetBytes(serial), Subject: subject(o), NotBefore: now, NotAfter: now.AddDate(0, 0, days),
		IsCA: o.IsCA, BasicConstraintsValid: true}
	c.DNSNames, c.IPAddresses = alternatives(o)
	c.KeyUsage, c.ExtKeyUsage = usages(o)
	return c, nil
}

func subject(o Options) pkix.Name {
	list := func(s string) []string {
		if s == "" {
			return nil
		}
		return []string{s}
	}
	return pkix.Name{CommonName: o.CommonName, Organization: list(o.Organization), OrganizationalUnit: list(o.OrganizationUnit),
		Country: list(o.Country), Province: list(o.State), Locality: list(o.Locality)}
}

var hostname = pattern.Lazy(`^(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)

// alternatives are the names and addresses that a certificate is for: the
// common name of one that is no CA is among them, since clients look nowhere else.
func alternatives(o Options) (names []string, addresses []net.IP) {
	all := o.AlternativeNames
	if !o.IsCA && hostname().MatchString(o.CommonName) && !slices.Contains(all, o.CommonName) {
		all = append(slices.Clone(all), o.CommonName)
	}
	for _, name := range all {
		if ip := net.ParseIP(name); ip != nil {
			addresses = append(addresses, ip)
		} else {
			names = append(names, name)
		}
	}
	return names, addresses
}

// usages are those that were asked for, or what a CA or a server and client need.
func usages(o Options) (usage x509.KeyUsage, extended []x509.ExtKeyUsage) {
	for _, u := range o.KeyUsage {
		usage |= keyUsages[u]
	}
	for _, u := range o.ExtendedKeyUsage {
		extended = append(extended, extKeyUsages[u])
	}
	switch {
	case o.IsCA && usage == 0:
		usage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	case !o.IsCA && usage == 0:
		usage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	}
	if !o.IsCA && extended == nil {
		extended = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	return usage, extended
}
