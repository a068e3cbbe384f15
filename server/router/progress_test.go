package router

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// deadlineWriter ends a body when its deadline is set.
type deadlineWriter struct {
	http.ResponseWriter
	body *io.PipeWriter
}

func (w deadlineWriter) SetReadDeadline(time.Time) error {
	return w.body.CloseWithError(errors.New("i/o timeout"))
}

// A body ends once nothing of it has come for the limit, however long it took
// before.
func TestBodyEndsAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, send := io.Pipe()
		const pause, bytes = 50 * time.Second, 10
		go func() {
			for range bytes {
				time.Sleep(pause)
				_, _ = send.Write([]byte("x"))
			}
		}()
		var read int64
		var err error
		app := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { read, err = io.Copy(io.Discard, r.Body) })
		began := time.Now()
		progressing(app, defaultProgress).ServeHTTP(deadlineWriter{httptest.NewRecorder(), send}, httptest.NewRequest(http.MethodPost, "/", body))
		if took, want := time.Since(began), bytes*pause+time.Minute; took != want || read != bytes || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %d bytes and %v after %v; want %d and %v after %v", read, err, took, bytes, os.ErrDeadlineExceeded, want)
		}
	})
}
