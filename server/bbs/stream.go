package bbs

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"time"

	"cupola/server/bbs/bbspb"
)

// kind is the subject of a stream.
type kind []topic

var (
	streamInstances = kind{aboutDesired, aboutInstance, aboutCrash}
	streamGroups    = kind{aboutDesired, aboutGroup, aboutCrash}
	streamTasks     = kind{aboutTask}
)

// wants reports whether a stream has an event. One for a cell has only that
// cell's instances; what is desired it has whole.
func (k kind) wants(e event, cellID string) bool {
	for _, t := range k {
		if t == e.topic {
			return cellID == "" || t == aboutDesired || t == aboutTask || e.cellID == cellID
		}
	}
	return false
}

// stream makes a handler of server-sent events: Diego's framing of protobuf. It
// ends when the client leaves, or reads too slowly.
func (s *Server) stream(k kind) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := &bbspb.EventsByCellIDRequest{}
		if err := decode(w, r, req); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		rc := http.NewResponseController(w)
		_ = rc.SetReadDeadline(time.Time{}) // nothing more is read
		// What apps desire already is not an event; what they desire from then on is.
		err := s.apps.refresh(r.Context())
		sub := s.hub.subscribe(func(e event) bool { return k.wants(e, req.CellId) })
		defer s.hub.unsubscribe(sub)
		if err = errors.Join(err, s.apps.refresh(r.Context())); err != nil {
			http.Error(w, "the desired LRPs of apps were not read", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.Header().Set("Cache-Control", "no-cache, no-store, must-revalidate")
		w.Header().Set("Connection", "keep-alive")
		w.WriteHeader(http.StatusOK)
		for id := 0; rc.Flush() == nil; id++ {
			select {
			case e, ok := <-sub.events:
				_ = rc.SetWriteDeadline(time.Now().Add(writeTime)) // what has none needs none: a test's
				if !ok || writeFrame(w, id, e) != nil {
					return
				}
			case <-r.Context().Done():
				return
			}
		}
	})
}

func writeFrame(w http.ResponseWriter, id int, e event) error {
	_, err := fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", id, e.name, base64.StdEncoding.EncodeToString(e.data))
	return err
}
