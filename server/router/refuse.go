package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

const routerErrorHeader = "X-Cf-Routererror"

// statusClientGone is what the log says of requests whose client went away
// before the answer (nginx, gorouter).
const statusClientGone = 499

// refuse answers in place of an app.
func (x *exchange) refuse(status int, routerError, message string) {
	h := x.Header()
	switch routerError {
	case "empty_host", "no_endpoints":
		h.Set("Cache-Control", "public,max-age=2")
	default:
		h.Set("Cache-Control", "no-cache, no-store")
	}
	x.answer(status, routerError, fmt.Sprintf("%d %s: %s", status, http.StatusText(status), message))
}

// failed answers for an endpoint that failed. If the client is gone it does
// nothing.
func (x *exchange) failed(err error) {
	if x.stalled() {
		x.refuse(http.StatusRequestTimeout, "request_timeout", "The client sent nothing of the request's body for too long")
		return
	}
	routerError := fmt.Sprintf("endpoint_failure (%v)", err)
	if x.gone(err) {
		x.answer(statusClientGone, routerError, "499 Request Cancelled")
		return
	}
	if errors.Is(err, errNoEndpoint) {
		x.refuseRoute()
		return
	}
	if x.body != nil && x.body.broken.Load() {
		x.refuse(http.StatusBadRequest, "invalid_request_body", "Request body could not be read")
		return
	}
	x.router.config.Log.Info("endpoint failed", "app_guid", x.appGUID(), "instance_guid", x.instanceGUID(), "vcap_request_id", x.id, "err", err)
	status, text := tlsFailure(err)
	x.answer(status, routerError, text)
}

// gone reports whether an error is that the client has gone.
func (x *exchange) gone(err error) bool {
	return x.request.Context().Err() != nil || errors.Is(err, context.Canceled)
}

func (x *exchange) answer(status int, routerError, body string) {
	x.err = routerError
	h := x.Header()
	h.Set(routerErrorHeader, routerError)
	h.Set(requestIDHeader, x.id)
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Del("Content-Length")
	x.WriteHeader(status)
	_, _ = io.WriteString(x, body+"\n") // the client is gone
}

func (x *exchange) appGUID() string {
	switch {
	case x.service != nil:
		return x.serviceOf
	case x.endpoint != nil:
		return x.endpoint.AppGUID
	case x.pool != nil:
		return x.pool.appGUID
	}
	return ""
}

func (x *exchange) instanceGUID() string {
	if x.endpoint != nil {
		return x.endpoint.InstanceGUID
	}
	return ""
}
