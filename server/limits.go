package server

import (
	"context"
	"net/http"

	"cupola/server/bulkhead"
	"cupola/server/router"
)

// openLimits derives the budgets of connections and requests from how many
// files this process may open.
func (d *daemon) openLimits(context.Context) error {
	limits, err := bulkhead.ProcessLimits()
	if err != nil {
		return err
	}
	d.limits, d.gate, d.apiSlots = limits, router.NewGate(limits), bulkhead.NewShare[string](limits.API, 1)
	return nil
}

// bounded lets requests to the API in as long as there is room. The API's own
// handler counts them by user, too.
func (d *daemon) bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done, ok := d.gate.EnterAPI(r)
		if !ok {
			overloaded(w, r)
			return
		}
		defer done()
		next.ServeHTTP(w, r)
	})
}

// byAddress counts requests to handlers that know no users: logins of one
// address leave room for others'.
func (d *daemon) byAddress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address := bulkhead.AddressOf(r.RemoteAddr).String()
		if !d.apiSlots.Take(address) {
			overloaded(w, r)
			return
		}
		defer d.apiSlots.Put(address)
		next.ServeHTTP(w, r)
	})
}

// overloaded answers a request that there is no room for, in Cloud Controller's
// form.
func overloaded(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", "application/json; charset=utf-8")
	header.Set("Retry-After", "1")
	if r.ProtoMajor == 1 {
		header.Set("Connection", "close")
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write([]byte(`{"errors":[{"code":10015,"title":"CF-ServiceUnavailable","detail":"Too many requests are under way: try again in a few seconds"}]}` + "\n")) // the client is gone: nobody to tell
}
