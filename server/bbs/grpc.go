package bbs

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"cupola/server/bbs/model"
	"cupola/store"
)

// grpcPrefix is what precedes a message of gRPC: whether it is compressed, and
// its length.
const grpcPrefix = 5

// grpc makes a handler of a call of gRPC's: one message each way over HTTP/2, and
// the status in the trailers.
func grpc[M any, P message[M]](s *Server, call func(context.Context, P) (proto.Message, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor < 2 || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			http.Error(w, "Locket speaks gRPC: HTTP/2 with the content type application/grpc", http.StatusUnsupportedMediaType)
			return
		}
		req := P(new(M))
		answer, err := proto.Message(nil), decodeGRPC(w, r, req)
		if err == nil {
			answer, err = call(store.As(r.Context(), "locket"), req)
		}
		w.Header().Set("Content-Type", "application/grpc")
		if err == nil {
			err = writeGRPC(w, answer)
		}
		status := s.grpcStatus(r, err)
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", strconv.Itoa(status.Code))
		if status.Message != "" {
			w.Header().Set(http.TrailerPrefix+"Grpc-Message", url.PathEscape(status.Message))
		}
	})
}

func decodeGRPC(w http.ResponseWriter, r *http.Request, into proto.Message) error {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // what has none needs none: a test's
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil || len(body) < grpcPrefix || body[0] != 0 || int64(binary.BigEndian.Uint32(body[1:])) != int64(len(body)-grpcPrefix) {
		return model.ErrLockRequest
	}
	if proto.Unmarshal(body[grpcPrefix:], into) != nil {
		return model.ErrLockRequest
	}
	return nil
}

func writeGRPC(w http.ResponseWriter, answer proto.Message) error {
	text, err := proto.Marshal(answer)
	if err != nil {
		return err
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // as above
	_, _ = w.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text))), text...))
	return nil
}

// grpcStatus is how a call went. What is not meant for clients is logged.
func (s *Server) grpcStatus(r *http.Request, err error) *model.Status {
	if err == nil {
		return &model.Status{}
	}
	if status, ok := errors.AsType[*model.Status](err); ok {
		return status
	}
	if r.Context().Err() == nil {
		s.Log.ErrorContext(r.Context(), "request to Locket was not answered", "path", r.URL.Path, "err", err)
	}
	return model.ErrLocket
}
