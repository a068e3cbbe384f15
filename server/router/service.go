package router

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"time"

	"cupola/runtime/fault"
)

// The headers between the router and route services.
const (
	forwardedURLHeader     = "X-Cf-Forwarded-Url"
	serviceSignatureHeader = "X-Cf-Proxy-Signature"
	serviceMetadataHeader  = "X-Cf-Proxy-Metadata"
)

// throughService sends a request of a route with a route service there, unless
// it comes from it; false after it was refused, in gorouter's words.
func (x *exchange) throughService() bool {
	h := x.request.Header
	if h.Get(serviceSignatureHeader) != "" {
		return x.fromService()
	}
	if h.Get("Upgrade") != "" {
		x.refuse(http.StatusServiceUnavailable, "route_service_unsupported", "Websocket requests are not supported for routes bound to Route Services.")
		return false
	}
	x.service, x.serviceOf = x.pool.service, x.pool.appGUID
	x.forwarded = scheme(x.request) + "://" + x.request.Host + x.path
	if q := x.request.URL.RawQuery; q != "" {
		x.forwarded += "?" + q
	}
	// An app of ours is reached as such, without a way around by its URL.
	x.host, x.path, x.instance = hostOf(x.service.Host), x.service.EscapedPath(), nil
	x.candidates = x.resolve()
	if x.pool != nil && x.pool.policy != nil { // we have no app's certificate to present, so the policy would deny us
		x.refuse(http.StatusMisdirectedRequest, "mtls_mismatch", "The route service wants client certificates, which the router has none of.")
		return false
	}
	if x.pool != nil && len(x.candidates) == 0 && !x.sleeps() {
		x.refuseRoute()
		return false
	}
	return true
}

// fromService checks that a request is one that was sent to the route service,
// and not long ago.
func (x *exchange) fromService() bool {
	h := x.request.Header
	forwarded := h.Get(forwardedURLHeader)
	err := x.router.seal.open(h.Get(serviceSignatureHeader), h.Get(serviceMetadataHeader), forwarded, time.Now())
	if err == nil && !x.isOf(forwarded) {
		err = fmt.Errorf("it is for %s", forwarded)
	}
	if err != nil {
		x.router.config.Log.Info("signature of a route service refused", "app_guid", x.pool.appGUID, "vcap_request_id", x.id, "err", err)
		x.refuse(http.StatusBadGateway, "route_service_signature", "Failed to validate Route Service Signature")
		return false
	}
	x.serviced = true
	for _, name := range []string{forwardedURLHeader, serviceSignatureHeader, serviceMetadataHeader} {
		delete(h, name)
	}
	return true
}

// isOf reports whether a URL leads to the route that the request found: a route
// service may change the path below it, but not lend its signature to another.
func (x *exchange) isOf(forwarded string) bool {
	_, rest, _ := strings.Cut(forwarded, "://")
	host, path, _ := strings.Cut(rest, "/")
	path, _, _ = strings.Cut("/"+path, "?")
	p := x.router.index.Load().find(hostOf(host), path, x.shard)
	return p != nil && p.next == x.pool.next // the same route, also of another table
}

// toService directs the forwarded request to the route service.
func (x *exchange) toService(out *http.Request) {
	to := *x.service
	if x.pool != nil {
		to.Scheme = "http"
	}
	out.URL, out.Host = &to, x.service.Host
	signature, metadata := x.router.seal.sign(x.forwarded, time.Now())
	out.Header[forwardedURLHeader] = []string{x.forwarded}
	out.Header[serviceSignatureHeader] = []string{signature}
	out.Header[serviceMetadataHeader] = []string{metadata}
}

// serviceTransport connects to route services that are no apps of ours.
func serviceTransport(c Config) *http.Transport {
	return &http.Transport{
		DialContext:           fault.Dial("router", c.Services.Dialer(c.Timeouts.Dial).DialContext),
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.ServiceCAs},
		TLSHandshakeTimeout:   c.Timeouts.Dial,
		DisableCompression:    true,
		MaxIdleConnsPerHost:   maxIdle,
		IdleConnTimeout:       c.Timeouts.BackendIdle,
		ExpectContinueTimeout: time.Second,
	}
}
