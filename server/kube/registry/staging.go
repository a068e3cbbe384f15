package registry

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"cupola/runtime/contract"
)

// Staging is a staging in a pod, as its stager sees it.
type Staging interface {
	// Begin begins a request, unless there are too many under way.
	Begin() (end func(), ok bool)
	// Plan returns the work of the staging. The error may be ErrNoStaging: another daemon knew it.
	Plan() ([]byte, error)
	// Input opens an archive that the plan names.
	Input(source string) (*os.File, error)
	// Output keeps a file that the plan names.
	Output(ctx context.Context, name string, body io.Reader) error
}

// What may keep a request of a stager from being answered.
var (
	ErrNotKnown  = errors.New("it is not known yet which stagings there are: ask again") // the daemon has just started
	ErrNoStaging = errors.New("there is no such staging, or it is over")
	ErrNotNamed  = errors.New("the plan of the staging does not name it")
	ErrHas       = errors.New("it was sent before")
	ErrBusy      = errors.New("it is being sent: ask again")
	ErrTooLarge  = errors.New("it is too large")
)

// stagings begins the paths of all stagings.
const stagings = "/staging/"

// StagingURL is where the stager of a cell's container asks.
func (r *Registry) StagingURL(cell, guid string) string {
	return "https://" + r.Address + stagings + cell + "/" + guid
}

// StagingToken is the bearer token of that stager.
func (r *Registry) StagingToken(cell, guid string) string {
	m := hmac.New(sha256.New, r.key)
	_, _ = io.WriteString(m, "staging\x00"+cell+"\x00"+guid) // no cell's name has a zero byte: no token is a password
	return hex.EncodeToString(m.Sum(nil))
}

// stagingHandler answers stagers.
func (r *Registry) stagingHandler() http.Handler {
	mux := http.NewServeMux()
	const base = stagings + "{cell}/{guid}/"
	mux.HandleFunc("GET "+base+contract.StagerPlan, r.staging(func(w http.ResponseWriter, _ *http.Request, s Staging) error {
		plan, err := s.Plan()
		if err == nil {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(plan)
		}
		return err
	}))
	mux.HandleFunc("GET "+base+contract.StagerInputs+"/{source}", r.staging(func(w http.ResponseWriter, req *http.Request, s Staging) error {
		f, err := s.Input(req.PathValue("source"))
		if err != nil {
			return err
		}
		defer f.Close()
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, req, "", time.Time{}, f)
		return nil
	}))
	mux.HandleFunc("PUT "+base+contract.StagerOutputs+"/{name}", r.staging(func(w http.ResponseWriter, req *http.Request, s Staging) error {
		err := s.Output(req.Context(), req.PathValue("name"), &patient{req.Body, http.NewResponseController(w)})
		if err == nil {
			w.WriteHeader(http.StatusCreated)
		}
		return err
	}))
	return mux
}

// silence is how long a stager may send nothing of a file.
const silence = time.Minute

// patient reads a body as long as something comes.
type patient struct {
	io.Reader
	conn *http.ResponseController
}

func (p *patient) Read(b []byte) (int, error) {
	_ = p.conn.SetReadDeadline(time.Now().Add(silence)) // of a connection, which can
	return p.Reader.Read(b)
}

// staging answers a request of the staging that its path and token name.
func (r *Registry) staging(answer func(http.ResponseWriter, *http.Request, Staging) error) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		cell, guid := req.PathValue("cell"), req.PathValue("guid")
		token, _ := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
		if subtle.ConstantTimeCompare([]byte(token), []byte(r.StagingToken(cell, guid))) != 1 || r.Stagings == nil {
			http.Error(w, "authentication required", http.StatusUnauthorized)
			return
		}
		s, err := r.Stagings(cell, guid)
		if err == nil {
			end, ok := s.Begin()
			if !ok {
				err = ErrBusy
			} else {
				defer end()
				err = answer(w, req, s)
			}
		}
		if err != nil {
			status, text := refusalOf(err)
			http.Error(w, text, status)
		}
	}
}

// refusalOf is the answer for an error, and what the log of the staging may say of it.
func refusalOf(err error) (status int, text string) {
	for _, known := range []struct {
		err    error
		status int
	}{
		{ErrNotKnown, http.StatusServiceUnavailable}, {ErrBusy, http.StatusServiceUnavailable}, {ErrNoStaging, http.StatusGone}, {ErrNotNamed, http.StatusNotFound},
		{ErrHas, http.StatusConflict}, {ErrTooLarge, http.StatusRequestEntityTooLarge},
	} {
		if errors.Is(err, known.err) {
			return known.status, err.Error()
		}
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return http.StatusInsufficientStorage, "the disk of cupola is full"
	case errors.Is(err, os.ErrNotExist):
		return http.StatusNotFound, "cupola has it no longer"
	}
	return http.StatusInternalServerError, "try again"
}
