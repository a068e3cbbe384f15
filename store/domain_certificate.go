package store

import "cupola/store/cf"

// DomainCertificates are the certificates that were given for domains. Each has the
// GUID of its domain, and ends with it.
var DomainCertificates = &Table[cf.DomainCertificate]{table{
	name: "domain_certificates", singular: "Certificate",
	columns: "guid, created_at, updated_at, certificate, key",
	fields: fieldsOf(func(v *cf.DomainCertificate, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.Certificate, sealedColumn{k, &v.Key}}
	}),
	resource: resourceOf(func(v *cf.DomainCertificate) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid"},
	orders:   map[string]string{"created_at": "created_at"},
}}
