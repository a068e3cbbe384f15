package certs

import (
	"crypto/tls"
	"crypto/x509"

	"cupola/server/acme"
)

// Callers knows the routes with policies, whose callers must show a certificate.
type Callers struct {
	// Guards finds the domain of such routes by the name that a client asks for.
	Guards func(serverName string) (domain string, ok bool)
	// May reports whether callers may show one, by the name that they ask for; nil is none.
	May func(serverName string) bool
	// Authorities, in PEM, sign the certificates of apps' instances. They are renewed.
	Authorities func() []byte
}

// TLS is how the HTTPS listeners speak. For domains of routes with policies, callers
// must show the certificate of an app's instance; for some names, they may.
func (s *Source) TLS(callers Callers) *tls.Config {
	base := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: s.Get}
	c := base.Clone()
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if s.acme != nil && acme.IsChallenge(hello) {
			return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{acme.TLSProtocol}, GetCertificate: s.acme.Challenge}, nil
		}
		asks := tls.RequireAndVerifyClientCert
		if _, ok := callers.Guards(hello.ServerName); !ok {
			asks = tls.VerifyClientCertIfGiven
			if callers.May == nil || !callers.May(hello.ServerName) {
				return nil, nil // c
			}
		}
		guarded := base.Clone()
		guarded.ClientAuth, guarded.ClientCAs = asks, x509.NewCertPool()
		guarded.ClientCAs.AppendCertsFromPEM(callers.Authorities())
		guarded.SessionTicketsDisabled = true // a session would outlive its certificate
		return guarded, nil
	}
	return c
}
