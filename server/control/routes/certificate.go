package routes

import (
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/store"
	"cupola/store/cf"
)

// NewCertificate is a certificate to be given to a domain, with its chain and key.
type NewCertificate struct {
	Certificate string `json:"certificate"`
	PrivateKey  string `json:"private_key"`
}

// Validate lists what is missing.
func (r NewCertificate) Validate() []string {
	return control.Must(r.Certificate != "", "Certificate can't be blank", r.PrivateKey != "", "Private key can't be blank")
}

// GiveCertificate gives a domain a certificate, in place of the one before.
func GiveCertificate(c *control.Session, d *cf.Domain, req NewCertificate) error {
	if d.Internal || d.TCP() {
		return cf.Unprocessable("Domain '%s' has no certificate: give one to a domain of HTTP routes.", d.Name)
	}
	pair, err := cf.ParsePair(req.Certificate, req.PrivateKey)
	if err == nil {
		err = cf.CheckCertificate(pair.Leaf, d.Name, c.Tx.Now)
	}
	if err != nil {
		return cf.Unprocessable("Certificate of domain '%s' is invalid: %s.", d.Name, err)
	}
	given, err := store.DomainCertificates.Get(c.Tx, d.GUID)
	write := store.DomainCertificates.Update
	if store.IsNotFound(err) {
		given, write, err = &cf.DomainCertificate{Resource: cf.Resource{GUID: d.GUID}}, store.DomainCertificates.Insert, nil
	}
	if err != nil {
		return err
	}
	given.Certificate, given.Key = req.Certificate, req.PrivateKey
	if err := write(c.Tx, given); err != nil {
		return err
	}
	return domainEvent(c, audit.DomainCertificateUpdate, d)
}

// RemoveCertificate removes the certificate that a domain was given.
func RemoveCertificate(c *control.Session, d *cf.Domain) error {
	if _, err := store.DomainCertificates.Get(c.Tx, d.GUID); err != nil {
		return err
	}
	if err := store.DomainCertificates.Delete(c.Tx, d.GUID); err != nil {
		return err
	}
	return domainEvent(c, audit.DomainCertificateDelete, d)
}
