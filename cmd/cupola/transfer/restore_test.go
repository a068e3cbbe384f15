package transfer

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/server/admin/backup"
	"cupola/store"
	"cupola/store/cf"
)

// TestARestoreGoesOnInItsSpaceAlone finds a space of the name that is restored to, which goes on only if this daemon's root began it, of the
// same backup: who may write to a space could else have another one's data restored into it.
func TestARestoreGoesOnInItsSpaceAlone(t *testing.T) {
	made := time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)
	restore := func(change func(*Restore)) *Restore {
		r := &Restore{Space: &backup.Space{GUID: "space", Org: "o", OrgGUID: "organizations", Made: made}, New: "copy", Secret: []byte("secret")}
		change(r)
		return r
	}
	same := func(*Restore) {}
	begun := func(change func(*Restore)) string { return restore(change).origin("organizations") }
	for name, c := range map[string]struct {
		begun string // the annotation; "": the space is another one
		err   string
	}{
		"the same":                            {begun(same), ""},
		"a space that runs":                   {"", "there is a space copy in the org o already"},
		"another moment":                      {begun(func(r *Restore) { r.Space.Made = made.Add(time.Second) }), "as of 2026-11-28T10:00:01Z that did not end"},
		"another space":                       {begun(func(r *Restore) { r.Space.GUID = "other" }), "did not end"},
		"copied from a space of another name": {begun(func(r *Restore) { r.New = "elsewhere" }), "did not end"},
		"copied from another org":             {restore(same).origin("other"), "did not end"},
		"forged":                              {begun(func(r *Restore) { r.Secret = []byte("guessed") }), "did not end"},
	} {
		annotations := map[string]string{"other": "x"}
		if c.begun != "" {
			annotations[restoring] = c.begun
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			one := capi.Doc{"guid": strings.TrimPrefix(r.URL.Path, "/v3/"), "name": "o", "metadata": capi.Doc{"annotations": annotations}}
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

// TestOrgOfARestore finds the org that the space was in, which has another name by now, while another one has its name.
func TestOrgOfARestore(t *testing.T) {
	there := map[string][]named{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(capi.Doc{"resources": there[r.FormValue("guids")+r.FormValue("names")]})
	}))
	defer server.Close()
	r := &Restore{Space: &backup.Space{GUID: "space", Org: "o", OrgGUID: "first"}, To: &capi.Client{API: server.URL, HTTP: server.Client()}}
	if _, err := r.findOrg(t.Context()); err == nil || !strings.Contains(err.Error(), "org o, where the space was: create it first") {
		t.Errorf("without an org: got %v", err)
	}
	there["o"] = []named{{"second", "o"}}
	if org, err := r.findOrg(t.Context()); err != nil || org != (named{"second", "o"}) {
		t.Errorf("without its org: got %+v, %v; want that of its name", org, err)
	}
	there["first"] = []named{{"first", "renamed"}}
	if org, err := r.findOrg(t.Context()); err != nil || org != (named{"first", "renamed"}) {
		t.Errorf("got %+v, %v; want its org", org, err)
	}
}

// TestRolesOfARestore gives them to the same users, by their GUIDs: another user may have the name of one by now.
func TestRolesOfARestore(t *testing.T) {
	var given []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			given = append(given, string(body))
			return
		}
		_, _ = io.WriteString(w, `{"resources": [{"type": "space_developer", "relationships": {"user": {"data": {"guid": "u1"}}}}], "included": {"users": [{"guid": "u1", "username": "ann", "origin": "uaa"}]}}`)
	}))
	defer server.Close()
	client := &capi.Client{API: server.URL, HTTP: server.Client()}
	for _, c := range []struct {
		restore *restorer
		want    string
	}{
		{nil, `{"data":{"origin":"uaa","username":"ann"}}`},
		{&restorer{}, `{"data":{"guid":"u1"}}`},
	} {
		given = nil
		if err := (&copier{from: client, to: client, restore: c.restore}).roles(t.Context(), "space", "from", "to"); err != nil {
			t.Fatal(err)
		}
		if len(given) != 1 || !strings.Contains(given[0], c.want) {
			t.Errorf("got %q; want %s", given, c.want)
		}
	}
}

// TestDryRunKeepsWhatFailed looks at a service instance that an earlier restore could not make, and one that it is making.
func TestDryRunKeepsWhatFailed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("got %s %s", r.Method, r.URL)
	}))
	defer server.Close()
	c := &copier{to: &capi.Client{API: server.URL, HTTP: server.Client()}, scope: scope{DryRun: true}}
	for state, want := range map[string]bool{"failed": false, "in progress": true} {
		if got, err := c.made(t.Context(), instance{LastOperation: lastOperation{Type: "create", State: state}}); err != nil || got != want {
			t.Errorf("%s: got %v, %v; want %v", state, got, err, want)
		}
	}
}

// TestSSHOfARestoreThatGoesOn begins with the space that a command created which was killed at once: whether it allows SSH is as in the backup.
func TestSSHOfARestoreThatGoesOn(t *testing.T) {
	s, err := store.Open(store.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Write(t.Context(), func(tx *store.Tx) error {
		return errors.Join(store.Orgs.Insert(tx, &cf.Org{Resource: cf.Resource{GUID: "org"}, Name: "o"}), store.Spaces.Insert(tx, &cf.Space{Resource: cf.Resource{GUID: "space"}, OrgGUID: "org", Name: "dev"}))
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &Restore{Space: &backup.Space{GUID: "space", Org: "o", OrgGUID: "org"}, New: "copy", Secret: []byte("secret")}
	var changed string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method != http.MethodGet {
			body, _ := io.ReadAll(q.Body)
			changed += q.Method + " " + q.URL.Path + " " + string(body)
			return
		}
		guid := map[string]string{"/v3/organizations": "org", "/v3/spaces": "new"}[q.URL.Path]
		_ = json.NewEncoder(w).Encode(capi.Doc{"resources": []any{capi.Doc{"guid": guid, "metadata": capi.Doc{"annotations": capi.Doc{restoring: r.origin("org")}}}}})
	}))
	defer server.Close()
	r.To = &capi.Client{API: server.URL, HTTP: server.Client()}
	c := &copier{to: r.To, restore: &restorer{r, s}, show: command.NewReport(&command.Env{Out: io.Discard})}
	if p, err := c.newSpace(t.Context()); err != nil || p.space.GUID != "new" {
		t.Fatalf("got %+v, %v", p, err)
	}
	if want := `PATCH /v3/spaces/new/features/ssh {"enabled":false}`; changed != want {
		t.Errorf("got %q; want %q", changed, want)
	}
}
