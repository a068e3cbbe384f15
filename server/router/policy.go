package router

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"cupola/runtime/identity"
)

// Policy lets in only callers who have shown the certificate of an app's
// instance, and who are among its sources (RFC-0055).
type Policy struct {
	Scope   string           // "any", "org" or "space": how near a caller must be to the app that it reaches
	Sources []string         // "cf:any", "cf:app:<guid>", "cf:space:<guid>", "cf:org:<guid>"; none: no caller is allowed
	Places  map[string]Place // of apps, by their GUIDs
}

// Place is where an app is.
type Place struct{ OrgGUID, SpaceGUID string }

const clientCertHeader = "X-Forwarded-Client-Cert"

// caller is the app that a certificate says it is of.
type caller struct {
	app string
	Place
}

func callerOf(cert *x509.Certificate) (c caller, ok bool) {
	o := identity.OwnerOf(cert)
	return caller{o.AppGUID, Place{OrgGUID: o.OrgGUID, SpaceGUID: o.SpaceGUID}}, o.AppGUID != "" && o.SpaceGUID != "" && o.OrgGUID != ""
}

// named reports whether a policy's source names the caller.
func (p *Policy) named(c caller) bool {
	return slices.ContainsFunc(p.Sources, func(source string) bool {
		return source == "cf:any" || source == "cf:app:"+c.app || source == "cf:space:"+c.SpaceGUID || source == "cf:org:"+c.OrgGUID
	})
}

// allows reports whether an app is where the scope has a caller's.
func (p *Policy) allows(c caller, app string) bool {
	switch at := p.Places[app]; p.Scope {
	case "any":
		return true
	case "org":
		return at.OrgGUID == c.OrgGUID
	case "space":
		return at.SpaceGUID == c.SpaceGUID
	}
	return false
}

// permitted checks the policy of the route, if it has one; false after it
// refused. Endpoints that are not near enough are no candidates.
func (x *exchange) permitted() bool {
	policy := x.pool.policy
	if policy == nil {
		return true
	}
	state := x.request.TLS
	if state == nil || hostOf(state.ServerName) != x.host || len(state.VerifiedChains) == 0 {
		x.refuse(http.StatusMisdirectedRequest, "mtls_mismatch", "The connection did not show a client certificate for the requested host.")
		return false
	}
	cert := state.PeerCertificates[0]
	c, ok := callerOf(cert)
	reason := ""
	switch {
	case !ok:
		reason = "certificate does not contain CF identity OU fields"
	case len(policy.Sources) == 0:
		reason = "route has no route policies configured"
	case !policy.named(c):
		reason = fmt.Sprintf("caller app %s not in route_policies", c.app)
	default:
		x.caller = &c
		if x.candidates = x.allowed(x.candidates); len(x.candidates) == 0 && !x.sleeps() {
			reason = fmt.Sprintf("caller app %s is not in the same %s", c.app, policy.Scope)
		}
	}
	if reason != "" {
		x.router.config.Log.Info("caller refused", "app_guid", x.pool.appGUID, "vcap_request_id", x.id, "err", reason)
		x.refuse(http.StatusForbidden, "route_policy", "The caller is not permitted to access this route.")
		return false
	}
	x.request.Header[clientCertHeader] = []string{certHeader(cert)}
	return true
}

// allowed leaves the endpoints that the caller may reach.
func (x *exchange) allowed(endpoints []*endpoint) []*endpoint {
	if x.caller == nil || x.pool.policy == nil || x.pool.policy.Scope == "any" {
		return endpoints
	}
	var found []*endpoint
	for _, e := range endpoints {
		if x.pool.policy.allows(*x.caller, e.AppGUID) {
			found = append(found, e)
		}
	}
	return found
}

// certHeader returns the client's certificate in Envoy's form of
// X-Forwarded-Client-Cert.
func certHeader(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return `Hash=` + hex.EncodeToString(sum[:]) + `;Subject="` + strings.ReplaceAll(cert.Subject.String(), `"`, `\"`) + `"`
}

// Guards reports whether the name that a TLS client asks for is in a domain whose
// routes want certificates of their callers.
func (r *Router) Guards(serverName string) (domain string, ok bool) {
	guarded := r.index.Load().guarded
	name := strings.ToLower(serverName)
	if guarded[name] {
		return name, true
	}
	_, domain, _ = strings.Cut(name, ".")
	return domain, guarded[domain]
}
