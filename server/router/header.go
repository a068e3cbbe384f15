package router

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
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
)

// setForwarded writes the headers of the forwarded request that are the same
// whichever endpoint gets it. in are the headers as they came.
func (x *exchange) setForwarded(out http.Header) {
	in := x.request.Header
	if x.router.config.DistrustForwarded {
		in = nil
	} else if forwarded := in["Forwarded"]; forwarded != nil {
		out["Forwarded"] = forwarded
	}
	out[forwardedFor] = []string{joinForwarded(in[forwardedFor], x.request.RemoteAddr)}
	out[forwardedProto] = []string{firstOr(in[forwardedProto], scheme(x.request))}
	out[forwardedHost] = []string{firstOr(in[forwardedHost], x.request.Host)}
	if out[requestStartHeader] == nil {
		out[requestStartHeader] = []string{strconv.FormatInt(x.started.UnixMilli(), 10)}
	}
	out[requestIDHeader] = []string{x.id}
	delete(out, appInstanceHeader)
	delete(out, processInstanceHeader)
}

// setEndpoint writes the headers that name the endpoint.
func setEndpoint(out http.Header, e *endpoint) {
	out[appIDHeader] = []string{e.AppGUID}
	instance := e.InstanceGUID
	if instance == "" {
		instance = e.Address
	}
	out[instanceIDHeader] = []string{instance}
	out[indexHeader] = []string{e.index}
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

// newUUID is a random UUID that is unique but no secret: the fast source will do.
func newUUID() string {
	var id uuid.UUID
	binary.LittleEndian.PutUint64(id[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(id[8:], rand.Uint64())
	id[6] = id[6]&0x0f | 0x40 // version 4
	id[8] = id[8]&0x3f | 0x80 // RFC 4122
	return id.String()
}

// seconds is a duration as the access log has it.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 6, 64) }
