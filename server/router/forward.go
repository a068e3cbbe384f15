package router

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"cupola/runtime/fault"
)

// errNoEndpoint is met when all endpoints went away after the request was
// admitted and before one was asked.
var errNoEndpoint = errors.New("no endpoint is left")

// forwarder takes admitted exchanges to their endpoints.
type forwarder struct {
	proxy    *httputil.ReverseProxy
	services *http.Transport // to route services that are no apps
	buffers  *bufferPool
}

func newForwarder(c Config) *forwarder {
	f := &forwarder{services: serviceTransport(c), buffers: &bufferPool{}}
	f.proxy = &httputil.ReverseProxy{
		Rewrite:        rewrite,
		Transport:      f,
		ModifyResponse: modify,
		ErrorHandler:   func(_ http.ResponseWriter, req *http.Request, err error) { exchangeOf(req.Context()).failed(err) },
		BufferPool:     f.buffers,
		ErrorLog:       slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
	return f
}

// serve forwards x and its answer. It panics with http.ErrAbortHandler when
// the endpoint fails after the answer has begun.
func (f *forwarder) serve(x *exchange) {
	if x.service != nil {
		var cancel context.CancelFunc
		x.Context, cancel = context.WithTimeout(x.Context, x.router.config.Timeouts.RouteService)
		defer cancel()
	}
	req := x.request.WithContext(x)
	if x.body != nil {
		req.Body = x.body // of the copy alone: the server looks at its own, when 100-continue was expected
		if req.ContentLength > 0 {
			// Otherwise the server takes what is left of the body when the answer begins, and closes it: Transport, which may read
			// on then, if only to see that the body has ended, breaks the answer off. (The end of chunks comes before the answer.)
			_ = http.NewResponseController(x.ResponseWriter).EnableFullDuplex() // fails where it is not needed
		}
	}
	f.proxy.ServeHTTP(x, req)
}

// rewrite prepares the forwarded request, but for what depends on its endpoint.
func rewrite(pr *httputil.ProxyRequest) {
	x := exchangeOf(pr.In.Context())
	out := pr.Out
	out.URL.Scheme = "http"
	if uri := pr.In.RequestURI; strings.HasPrefix(uri, "/") && !strings.HasPrefix(uri, "//") || uri == "*" {
		out.URL.Opaque, out.URL.RawQuery, out.URL.ForceQuery = uri, "", false // byte for byte as it came
	} else {
		out.URL.RawQuery = pr.In.URL.RawQuery
	}
	out.Trailer = x.request.Trailer // the server fills it at the end of the body
	x.setForwarded(out.Header)
	if x.service != nil {
		x.toService(out)
	}
	x.header = out.Header
	x.sent = time.Now()
	if strings.HasPrefix(out.Header.Get("Content-Type"), "application/grpc") {
		x.liftProgress() // clients may be silent before the first answer, too
	}
}

// RoundTrip sends the request to an endpoint, or to a route service.
func (f *forwarder) RoundTrip(req *http.Request) (res *http.Response, err error) {
	x := exchangeOf(req.Context())
	if x.pool == nil { // a route service that is no app of ours
		if req.Body != nil {
			req.Body = fault.Body("router", req.Body)
		}
		return f.services.RoundTrip(req)
	}
	if req.Body != nil {
		req.Body = fault.Body("router", io.NopCloser(req.Body)) // a failed attempt closes it, and the next one needs it
	}
	err = x.attempt(func() (err error) {
		req.URL.Host = x.endpoint.address
		setEndpoint(req.Header, x.endpoint)
		res, err = x.endpoint.transport.RoundTrip(req) //nolint:bodyclose // ReverseProxy does
		return err
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

func dialFailed(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// modify sees a response's header before it is forwarded.
func modify(res *http.Response) error {
	x := exchangeOf(res.Request.Context())
	x.answered(res.StatusCode, res.ContentLength, res.Header)
	if res.Header["Content-Type"] == nil {
		x.Header()["Content-Type"] = nil // the server would guess one (gorouter: proxy/utils/responsewriter.go)
	}
	return nil
}

// answered notes an answer and completes its header. length is that of the body;
// -1 if it is unknown.
func (x *exchange) answered(status int, length int64, header http.Header) {
	x.status, x.length = status, length
	x.liftProgress()
	if header[requestIDHeader] == nil {
		header[requestIDHeader] = []string{x.id}
	}
	if x.service == nil {
		x.stick(header)
	}
}

// newTransport keeps the connections to one endpoint.
func (r *Router) newTransport(e Endpoint, turns *turns) *http.Transport {
	t := r.config.Timeouts
	transport := &http.Transport{
		DialContext:           fault.Dial("router", r.securing(e, turns.DialContext)),
		DisableCompression:    true, // bodies go through as they are
		MaxIdleConnsPerHost:   maxIdle,
		IdleConnTimeout:       t.BackendIdle,
		ResponseHeaderTimeout: t.ResponseHeader,
		ExpectContinueTimeout: time.Second,
	}
	if e.Protocol == HTTP2 {
		transport.Protocols = new(http.Protocols)
		transport.Protocols.SetUnencryptedHTTP2(true)
	}
	return transport
}

// maxIdle connections are kept to an endpoint.
const maxIdle = 512

// bufferPool lends the buffers that bodies are copied through.
type bufferPool struct{ pool sync.Pool }

const bufferBytes = 32 << 10

// Get lends a buffer.
func (p *bufferPool) Get() []byte {
	if b, ok := p.pool.Get().(*[bufferBytes]byte); ok {
		return b[:]
	}
	return make([]byte, bufferBytes)
}

// Put takes a buffer back.
func (p *bufferPool) Put(b []byte) { p.pool.Put((*[bufferBytes]byte)(b)) }
