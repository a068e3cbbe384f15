package front

import (
	"net/http"

	"cupola/server/bulkhead"
	"cupola/server/refusal"
)

// bounded lets requests to the API in as long as there is room. The API's own
// handler counts them by user, too.
func (f *Front) bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done, ok := f.Gate.EnterAPI(r)
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
func (f *Front) byAddress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address := bulkhead.AddressOf(r.RemoteAddr).String()
		if !f.Slots.Take(address) {
			overloaded(w, r)
			return
		}
		defer f.Slots.Put(address)
		next.ServeHTTP(w, r)
	})
}

// overloaded answers a request that there is no room for, in Cloud Controller's
// form.
func overloaded(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Retry-After", "1")
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	refusal.Write(w, http.StatusServiceUnavailable, 10015, "CF-ServiceUnavailable", "Too many requests are under way: try again in a few seconds")
}
