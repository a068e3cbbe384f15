package certs

import (
	"crypto/tls"
	"crypto/x509"

	"cupola/server/acme"
)

// Callers tells of routes with policies, whose callers must show a certificate.
type Callers struct {
	// Guards finds the domain of such routes by the name that a client asks for.
	Guards func(serverName string) (domain string, ok bool)
	// Authorities, in PEM, sign the certificates of apps' instances. They are renewed.
	Authorities func() []byte
}

// TLS is how the HTTPS listeners speak. For domains of routes with policies, callers
// must show the certificate of an app's instance.
func (s *Source) TLS(callers Callers) *tls.Config {
	base := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: s.Get}
	c := base.Clone()
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if s.acme != nil && acme.IsChallenge(hello) {
			return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{acme.TLSProtocol}, GetCertificate: s.acme.Challenge}, nil
		}
		if _, ok := callers.Guards(hello.ServerName); !ok {
			return nil, nil // c
		}
		guarded := base.Clone()
		guarded.ClientAuth, guarded.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		guarded.ClientCAs.AppendCertsFromPEM(callers.Authorities())
		guarded.SessionTicketsDisabled = true // a session would outlive its certificate
		return guarded, nil
	}
	return c
}
