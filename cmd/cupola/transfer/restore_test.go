package transfer

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/server/admin/backup"
)

// TestARestoreGoesOnInItsSpaceAlone finds a space of the name that is restored to, which goes on only if this daemon's root began it, of the
// same backup: who may write to a space could else have another one's data restored into it.
func TestARestoreGoesOnInItsSpaceAlone(t *testing.T) {
	made := time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)
	restore := func(change func(*Restore)) *Restore {
		r := &Restore{Space: &backup.Space{GUID: "space", Org: "o", Made: made}, New: "copy", Secret: []byte("secret")}
		change(r)
		return r
	}
	same := func(*Restore) {}
	for name, c := range map[string]struct {
		begun *Restore // nil: the space is another one
		err   string
	}{
		"the same":                            {restore(same), ""},
		"a space that runs":                   {nil, "there is a space copy in the org o already"},
		"another moment":                      {restore(func(r *Restore) { r.Space.Made = made.Add(time.Second) }), "as of 2026-11-28T10:00:01Z that did not end"},
		"another space":                       {restore(func(r *Restore) { r.Space.GUID = "other" }), "did not end"},
		"copied from a space of another name": {restore(func(r *Restore) { r.New = "elsewhere" }), "did not end"},
		"forged":                              {restore(func(r *Restore) { r.Secret = []byte("guessed") }), "did not end"},
	} {
		annotations := map[string]string{"other": "x"}
		if c.begun != nil {
			annotations[restoring] = c.begun.origin()
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			one := capi.Doc{"guid": strings.TrimPrefix(r.URL.Path, "/v3/"), "metadata": capi.Doc{"annotations": annotations}}
			_ = json.NewEncoder(w).Encode(capi.Doc{"resources": []any{one}})
		}))
		r := restore(same)
		r.To = &capi.Client{API: server.URL, HTTP: server.Client()}
		p, err := r.findSpace(t.Context())
		server.Close()
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || p.space.GUID != "spaces" || p.org.GUID != "organizations" {
			t.Errorf("%s: got %+v, %v; want %q", name, p, err, c.err)
		}
	}
}
