package admin

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"cupola/server/admin/stack"
	"cupola/server/refusal"
)

// remotePath is where the API has the operations of Remote.
const remotePath = "/v1/admin"

// stackPullForAPI is StackPull from registries that users may name.
var stackPullForAPI = Operation[*stack.Library, stack.PullRequest, stack.Info]{StackPull.about,
	nil, (*Daemon).stacks, (*stack.Library).PullForAPI}

// remoteOperations are the operations that admins may call through the API. They neither
// read nor write files of the machine by a path, and grant no rights.
func remoteOperations() []Listed {
	return []Listed{StackList, StackInspect, stackPullForAPI, StackGC, StackRemove, KeyList, BrokerStatus, leaks, BackupsStatus, BackupsRun}
}

// What requests of the API may hold, and how many operations they may have under
// way.
const (
	maxRemoteBody = 64 << 10
	maxRemote     = 4
)

// Remote serves some operations at POST RemotePath/NAME, with the lines that the
// control socket answers with. It does not authenticate: its caller passes on only
// requests of admins.
func (d *Daemon) Remote() http.Handler {
	m := http.NewServeMux()
	slots := make(chan struct{}, maxRemote)
	for _, o := range remoteOperations() {
		m.Handle("POST "+remotePath+o.path(), bounded(slots, o.handler(d)))
	}
	m.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refusal.Write(w, http.StatusNotFound, 10000, "CF-NotFound", "Unknown request")
	})
	return m
}

// bounded refuses what is too large, is no JSON object or is one operation too
// many.
func bounded(slots chan struct{}, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRemoteBody))
		if err != nil {
			refusal.Write(w, http.StatusRequestEntityTooLarge, 1001, "CF-MessageParseError", fmt.Sprintf("Request invalid due to parse error: the body has more than %d bytes", maxRemoteBody))
			return
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(text, &object); err != nil || object == nil {
			refusal.Write(w, http.StatusBadRequest, 1001, "CF-MessageParseError", "Request invalid due to parse error: the body must be a JSON object, like {}")
			return
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			w.Header().Set("Retry-After", "1")
			refusal.Write(w, http.StatusServiceUnavailable, 10015, "CF-ServiceUnavailable", fmt.Sprintf("%d operations are under way: try again when one has ended", maxRemote))
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(text)))
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
