package identity

import (
	"crypto/x509"
	"strings"
)

// Owner is the app, with its space and its org, whose instance a certificate is of; the GUIDs that it
// does not say are "".
type Owner struct{ AppGUID, SpaceGUID, OrgGUID string }

// OwnerOf reads the organizational units of a verified certificate.
func OwnerOf(cert *x509.Certificate) (o Owner) {
	for _, unit := range cert.Subject.OrganizationalUnit {
		kind, guid, _ := strings.Cut(unit, ":")
		switch kind {
		case "app":
			o.AppGUID = guid
		case "space":
			o.SpaceGUID = guid
		case "organization":
			o.OrgGUID = guid
		}
	}
	return o
}
