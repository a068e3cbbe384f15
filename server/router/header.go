package router

import (
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Headers in Go's canonical spelling.
const (
	requestIDHeader    = "X-Vcap-Request-Id"
	requestStartHeader = "X-Request-Start"
	appIDHeader        = "X-Cf-Applicationid"
	instanceIDHeader   = "X-Cf-Instanceid"
	indexHeader        = "X-Cf-Instanceindex"
	forwardedFor       = "X-Forwarded-For"
	forwardedProto     = "X-Forwarded-Proto"
	forwardedHost      = "X-Forwarded-Host"
	traceHeader        = "Traceparent"
)

// setForwarded writes the headers of the forwarded request that are the same
// whichever endpoint gets it.
func (x *exchange) setForwarded(out http.Header) {
	in := x.request.Header
	if x.router.config.DistrustForwarded && !x.serviced {
		in = nil
		delete(out, "Forwarded")
	} else if forwarded := in["Forwarded"]; forwarded != nil {
		out["Forwarded"] = forwarded
	}
	values := [5]string{joinForwarded(in[forwardedFor], x.request.RemoteAddr), firstOr(in[forwardedProto], scheme(x.request)), firstOr(in[forwardedHost], x.request.Host), x.id}
	out[forwardedFor], out[forwardedProto], out[forwardedHost], out[requestIDHeader] = values[0:1:1], values[1:2:2], values[2:3:3], values[3:4:4]
	if out[requestStartHeader] == nil {
		values[4] = strconv.FormatInt(x.started.UnixMilli(), 10)
		out[requestStartHeader] = values[4:5:5]
	}
	if x.router.config.DistrustForwarded && x.caller == nil && !x.serviced {
		delete(out, clientCertHeader)
	}
	for _, name := range []string{appInstanceHeader, processInstanceHeader, serviceSignatureHeader, "Proxy"} {
		delete(out, name) // CGI programs take Proxy for the variable HTTP_PROXY
	}
	dropLookalikes(out)
	x.setTrace(out)
}

// setTrace continues the request's trace.
func (x *exchange) setTrace(out http.Header) {
	if trace := x.router.config.Trace; trace != nil && x.trace == "" {
		x.trace = trace(x.request.Header)
	}
	if x.trace != "" {
		out[traceHeader] = []string{x.trace}
	}
}

// hopByHop are the headers of one connection (net/http/httputil: ReverseProxy).
var hopByHop = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// dropHopByHop drops the headers that are of one connection, and those that
// Connection names.
func dropHopByHop(h http.Header) {
	for _, value := range h["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			if name = textproto.TrimString(name); name != "" {
				h.Del(name)
			}
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// ours begin the names of headers that the router writes, or decides on.
var ours = []string{"Forwarded", "X-Forwarded-", "X-Cf-", "X-Vcap-", "X-B3-", "B3", "X-Request-Start", "X-Real-Ip", "Proxy"}

// dropLookalikes drops headers with underscores that would be the router's with
// dashes: CGI, WSGI and Rack give both to an app under one name.
func dropLookalikes(h http.Header) {
	for name := range h {
		if strings.IndexByte(name, '_') < 0 {
			continue
		}
		dashed := http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
		if slices.ContainsFunc(ours, func(begin string) bool { return strings.HasPrefix(dashed, begin) }) {
			delete(h, name)
		}
	}
}

// setEndpoint writes the headers that name the endpoint.
func setEndpoint(out http.Header, e *endpoint) {
	out[appIDHeader], out[instanceIDHeader], out[indexHeader] = e.appIDValue, e.instanceIDValue, e.indexValue
}

func joinForwarded(prior []string, remote string) string {
	client, _, err := net.SplitHostPort(remote)
	if err != nil {
		client = remote
	}
	if len(prior) == 0 {
		return client
	}
	return strings.Join(prior, ", ") + ", " + client
}

func firstOr(values []string, otherwise string) string {
	if len(values) > 0 && values[0] != "" {
		return values[0]
	}
	return otherwise
}

func scheme(req *http.Request) string {
	if req.TLS != nil {
		return "https"
	}
	return "http"
}

// appendSeconds appends a duration as the access log has it.
func appendSeconds(b []byte, d time.Duration) []byte {
	d = max(d, 0).Round(time.Microsecond)
	b = strconv.AppendInt(b, int64(d/time.Second), 10)
	return appendDigits(append(b, '.'), int(d%time.Second/time.Microsecond), 6)
}
