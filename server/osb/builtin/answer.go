package builtin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
)

// Object is one of JSON.
type Object = map[string]any

// Answer is what a request is answered.
type Answer struct {
	Status int // 0 is the status 200
	Body   Object
}

// Refusal is an error that the platform sees.
type Refusal struct {
	Status int
	Code   string // the specification's or the service's own name of the error; "" for none
	Text   string
}

func (r *Refusal) Error() string { return r.Text }

// Refuse makes a Refusal without a code.
func Refuse(status int, format string, args ...any) error {
	return &Refusal{Status: status, Text: fmt.Sprintf(format, args...)}
}

// Routes are what a broker answers, by the patterns of http.ServeMux.
type Routes map[string]func(*http.Request) (Answer, error)

// Handler answers the platform, which Guard let in.
func (routes Routes) Handler(log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	for pattern, do := range routes {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			a, err := do(r)
			if err != nil {
				a = failed(r, err, log)
			}
			reply(w, a.Status, a.Body)
		})
	}
	return mux
}

func failed(r *http.Request, err error, log *slog.Logger) Answer {
	if refused, ok := errors.AsType[*Refusal](err); ok {
		a := Answer{refused.Status, Object{"description": refused.Text}}
		if refused.Code != "" {
			a.Body["error"] = refused.Code
		}
		return a
	}
	if r.Context().Err() == nil {
		log.ErrorContext(r.Context(), "request of the platform was not done", "method", r.Method, "path", r.URL.Path, "err", err)
	}
	return Answer{http.StatusInternalServerError, Object{"description": err.Error()}}
}

// maxRequest bounds a request, in bytes.
const maxRequest = 1 << 20

// Decode reads the body of a request.
func Decode(r *http.Request, to any) error {
	text, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, to); err != nil {
		return Refuse(http.StatusBadRequest, "the request is not a JSON object: %v", err)
	}
	return nil
}

// Text is what two requests for the same have in common: what was decoded of them.
func Text(decoded any) string {
	text, err := json.Marshal(decoded)
	if err != nil {
		return "" // it was JSON
	}
	return string(text)
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(max(status, http.StatusOK))
	_ = json.NewEncoder(w).Encode(body) // one who left needs no answer
}
