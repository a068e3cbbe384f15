package bbs

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"cupola/server/bbs/bbspb"
	"cupola/server/bbs/model"
	"cupola/store"
)

// maxBody bounds a request: far above the largest DesiredLRP, with its files of
// 1 MiB and routes of 128 KiB.
const maxBody = 8 << 20

const protobuf = "application/x-protobuf"

// message is a pointer to a message of type M.
type message[M any] interface {
	*M
	proto.Message
}

// rpc makes a handler of a call. Diego answers 200 whatever comes of it: the
// error is field 1 of every answer.
func rpc[M any, P message[M]](s *Server, call func(context.Context, P) (proto.Message, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := P(new(M))
		answer, err := proto.Message(nil), decode(w, r, req)
		if err == nil {
			answer, err = call(store.As(r.Context(), "bbs"), req)
		}
		if err != nil {
			answer = &bbspb.LifecycleResponse{Error: s.fault(r, err).Proto()}
		}
		s.write(w, r, answer)
	})
}

// decode reads a request. An empty body is an empty message.
func decode(w http.ResponseWriter, r *http.Request, into proto.Message) error {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // what has none needs none: a test's
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return model.ErrBadRequest
	}
	return unmarshal(body, into)
}

// unmarshal is Diego's view of a request's body.
func unmarshal(body []byte, into proto.Message) error {
	if proto.Unmarshal(body, into) != nil {
		return model.ErrBadRequest
	}
	return nil
}

// fault is an error as the client sees it. What is not meant for clients is
// logged.
func (s *Server) fault(r *http.Request, err error) *model.Error {
	if e, ok := errors.AsType[*model.Error](err); ok {
		return e
	}
	if r.Context().Err() == nil {
		s.Log.ErrorContext(r.Context(), "request to the BBS was not answered", "path", r.URL.Path, "trace_id", traceID(r), "err", err)
	}
	return model.ErrUnknown
}

// traceID is what a client calls its request.
func traceID(r *http.Request) string {
	id := r.Header.Get("X-Vcap-Request-Id")
	return id[:min(len(id), 128)]
}

func (s *Server) write(w http.ResponseWriter, r *http.Request, m proto.Message) {
	body, err := proto.Marshal(m)
	if err != nil {
		s.Log.ErrorContext(r.Context(), "answer of the BBS was not encoded", "path", r.URL.Path, "err", err)
		http.Error(w, "the answer was not encoded", http.StatusInternalServerError)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // as above
	w.Header().Set("Content-Type", protobuf)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // a client that left needs no answer
}
