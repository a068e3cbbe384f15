package authority

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"strings"
)

// privateNets are the addresses that a constrained CA may sign, besides the machine's
// public ones. They mean nothing outside of a local network.
var privateNets = []string{"127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16", "::1/128", "fc00::/7", "fe80::/10"}

// Constrained signs a second certificate of an authority, with its name and key, that is
// good for domains, those below them, localhost, addresses and private ones alone. Who
// trusts it in place of the first trusts nothing else that the authority signs. The same
// arguments give the same bytes.
func Constrained(c Config, domains []string, addresses []net.IP) (*x509.Certificate, error) {
	a := &Authority{cfg: c}
	if err := a.read(); err != nil {
		return nil, fmt.Errorf("certificate authority %s: %w", c.CertFile, err)
	}
	own := a.certs[0]
	template := &x509.Certificate{Subject: own.Subject, SubjectKeyId: own.SubjectKeyId, NotBefore: own.NotBefore, NotAfter: own.NotAfter,
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: own.KeyUsage,
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: []string{"localhost"}}
	for _, d := range domains {
		d = strings.ToLower(strings.TrimPrefix(strings.TrimSuffix(d, "."), "*."))
		if d == "" || strings.ContainsAny(d, " */:@") {
			return nil, fmt.Errorf("%q is not a domain: give names like example.com", d)
		}
		template.PermittedDNSDomains = append(template.PermittedDNSDomains, d)
	}
	for _, text := range privateNets {
		_, n, err := net.ParseCIDR(text)
		if err != nil {
			return nil, err
		}
		template.PermittedIPRanges = append(template.PermittedIPRanges, n)
	}
	for _, ip := range addresses {
		if !ip.IsPrivate() && !ip.IsLoopback() {
			template.PermittedIPRanges = append(template.PermittedIPRanges, host(ip))
		}
	}
	sum := sha256.Sum256(fmt.Append(own.Raw, template.PermittedDNSDomains, template.PermittedIPRanges))
	template.SerialNumber = new(big.Int).SetBytes(sum[:15])
	der, err := x509.CreateCertificate(nil, template, template, &a.key.PublicKey, a.key) // no randomness: RFC 6979
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// host is the network of one address.
func host(ip net.IP) *net.IPNet {
	if four := ip.To4(); four != nil {
		return &net.IPNet{IP: four, Mask: net.CIDRMask(32, 32)}
	}
	return &net.IPNet{IP: ip, Mask: net.CIDRMask(128, 128)}
}
