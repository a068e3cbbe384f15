package boshapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"cupola/store"
	"cupola/store/cf"
)

// answer is what a handler answers. Its status 0 means 200.
type answer struct {
	status int
	header http.Header
	body   any                                      // JSON
	raw    func(http.ResponseWriter, *http.Request) // writes header and body itself
}

func (a *answer) write(w http.ResponseWriter, r *http.Request) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	if a.raw != nil {
		a.raw(w, r)
		return
	}
	if a.body != nil {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(cmp.Or(a.status, http.StatusOK))
	if a.body != nil {
		_ = json.NewEncoder(w).Encode(a.body) // the client has gone
	}
}

func ok(body any) (*answer, error) { return &answer{body: body}, nil }

func noContent() (*answer, error) { return &answer{status: http.StatusNoContent}, nil }

// toTask redirects to a task, as the director answers all that it does in one.
func toTask(t *cf.BOSHTask) *answer {
	return &answer{status: http.StatusFound, header: http.Header{"Location": {fmt.Sprintf("/tasks/%d", t.Number)}}}
}

// refusal is an error in the director's form, with the code of its errors.rb; 0 is
// none of these.
type refusal struct {
	status, code int
	text         string
}

func (r *refusal) Error() string { return r.text }

// refuse says that a request is not possible here.
func refuse(format string, args ...any) error {
	return &refusal{http.StatusBadRequest, 0, fmt.Sprintf(format, args...)}
}

// errUnauthenticated is the answer without a good token.
func errUnauthenticated(r *http.Request) error {
	return &refusal{http.StatusUnauthorized, 0, "Not authorized: '" + r.URL.Path + "'"}
}

// statuses are those of errors that the director's packages give; others are 400.
var statuses = map[cf.Kind]int{cf.ResourceNotFound: http.StatusNotFound, cf.NotFound: http.StatusNotFound, cf.NotAuthorized: http.StatusUnauthorized,
	cf.RequestTooLarge: http.StatusRequestEntityTooLarge, cf.ServiceUnavailable: http.StatusServiceUnavailable, cf.DiskFull: http.StatusInsufficientStorage,
	cf.DatabaseError: http.StatusInternalServerError, cf.BlobDamaged: http.StatusInternalServerError, cf.Unknown: http.StatusInternalServerError}

// failure is the answer to an error. What a client cannot act on is logged.
func (s *Server) failure(r *http.Request, err error) *answer {
	header := http.Header{}
	if refused, is := errors.AsType[*refusal](err); is {
		if refused.status == http.StatusUnauthorized {
			header.Set("WWW-Authenticate", `Basic realm="BOSH Director"`)
		}
		return &answer{status: refused.status, header: header, body: doc{"code": refused.code, "description": refused.text}}
	}
	if errors.Is(err, context.Canceled) || r.Context().Err() != nil {
		return &answer{status: 499, body: doc{}}
	}
	known, is := errors.AsType[*cf.Error](err)
	if !is {
		s.Log.ErrorContext(r.Context(), "request failed", slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Any("err", err))
		known = cmp.Or(store.Explain(err), cf.Errorf(cf.Unknown, "An unknown error occurred."))
	}
	code := 100
	if known.Kind == cf.ResourceNotFound {
		code = 100002
	}
	return &answer{status: cmp.Or(statuses[known.Kind], http.StatusBadRequest), header: header, body: doc{"code": code, "description": known.Detail}}
}

// isNotFound reports whether an error says that something does not exist.
func isNotFound(err error) bool {
	refused, is := errors.AsType[*refusal](err)
	return is && refused.status == http.StatusNotFound
}
