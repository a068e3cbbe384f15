package api

import (
	"cupola/server/control/routes"
	"cupola/store"
	"cupola/store/cf"
)

// certificateOf finds the certificate that was given to the domain of {guid}.
func certificateOf(c *call) (*cf.DomainCertificate, error) {
	if _, err := findDomain(c); err != nil {
		return nil, err
	}
	return store.DomainCertificates.Get(c.Tx, c.guid())
}

// viewCertificate shows a certificate, never its key.
func viewCertificate(c *call, g *cf.DomainCertificate) doc {
	out := with(resource(g.Resource), doc{
		"certificate":   g.Certificate,
		"relationships": doc{"domain": toOne(g.GUID)},
		"links":         doc{"self": c.link("/v3/domains/%s/certificate", g.GUID), "domain": c.link("/v3/domains/%s", g.GUID)},
	})
	pair, err := cf.ParsePair(g.Certificate, g.Key)
	if err != nil {
		return out // it was read when it was given
	}
	leaf := pair.Leaf
	return with(out, doc{"names": orNone(leaf.DNSNames), "subject": leaf.Subject.String(), "issuer": leaf.Issuer.String(), "not_before": leaf.NotBefore.UTC(), "not_after": leaf.NotAfter.UTC()})
}

// giveCertificate gives the domain of {guid} a certificate, and shows that.
func giveCertificate(c *call) (*response, error) {
	d, err := findDomain(c)
	if err != nil {
		return nil, err
	}
	var req routes.NewCertificate
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := routes.GiveCertificate(c.Session, d, req); err != nil {
		return nil, err
	}
	g, err := certificateOf(c)
	if err != nil {
		return nil, err
	}
	return ok(viewCertificate(c, g))
}
