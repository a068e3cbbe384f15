package backups

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

// TestServiceLog prints the newest lines in their order, and then each new line once, until it is interrupted. What would
// control a terminal is not printed.
func TestServiceLog(t *testing.T) {
	line := func(at int, text string) string {
		return fmt.Sprintf(`{"timestamp": "%d", "tags": {"source_type": "SERVICE/REDIS"}, "log": {"payload": "%s"}}`, at, base64.StdEncoding.EncodeToString([]byte(text)))
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	log := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var batch []string
		switch q := r.URL.Query(); {
		case !strings.HasSuffix(r.URL.Path, "/read/guid"):
			w.WriteHeader(http.StatusNotFound)
			return
		case q.Get("descending") == "true":
			batch = []string{line(2e9, "two\x1b[31m"), line(1e9, "one")}
		case q.Get("start_time") == "2000000001":
			batch = []string{line(3e9, "three")}
		case q.Get("start_time") == "3000000001":
			interrupt()
		default:
			t.Errorf("the log is read from %s", q.Get("start_time"))
		}
		fmt.Fprintf(w, `{"envelopes": {"batch": [%s]}}`, strings.Join(batch, ","))
	}))
	defer log.Close()
	for _, follow := range []bool{false, true} {
		want := "one|two?[31m"
		if follow {
			want += "|three"
		}
		var out strings.Builder
		l := &logsCmd{Follow: follow}
		if err := l.print(&command.Env{Ctx: ctx, Out: &out}, &capi.Client{API: log.URL, HTTP: log.Client()}, "guid"); err != nil {
			t.Errorf("follow %t: %v", follow, err)
		}
		var got []string
		for printed := range strings.Lines(out.String()) {
			_, text, _ := strings.Cut(strings.TrimSpace(printed), " [SERVICE/REDIS] ")
			got = append(got, text)
		}
		if strings.Join(got, "|") != want {
			t.Errorf("follow %t: got %q; want %s", follow, out.String(), want)
		}
	}
}
