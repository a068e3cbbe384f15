package alerts

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"cupola/server/refusal"
	"cupola/store"
	"cupola/store/cf"
)

// Path is where the API has alerts.
const Path = "/v1/alerts"

const maxBody = 256 << 10

// Handler serves alerts. It does not authenticate: its caller passes on only requests of
// admins, and of others that may read all, only those with the method GET.
func (l *Loop) Handler() http.Handler {
	m := http.NewServeMux()
	route := func(pattern string, status int, f func(*http.Request) (any, error)) {
		m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			v, err := f(r)
			l.answer(w, r, status, v, err)
		})
	}
	route("GET "+Path, http.StatusOK, l.list)
	route("GET "+Path+"/rules", http.StatusOK, l.listRules)
	route("PATCH "+Path+"/rules/{name}", http.StatusOK, l.changeRule)
	route("GET "+Path+"/targets", http.StatusOK, l.listTargets)
	route("POST "+Path+"/targets", http.StatusCreated, l.createTarget)
	route("DELETE "+Path+"/targets/{name}", http.StatusNoContent, l.deleteTarget)
	route("POST "+Path+"/targets/{name}/test", http.StatusOK, l.testTarget)
	route("GET "+Path+"/silences", http.StatusOK, l.listSilences)
	route("POST "+Path+"/silences", http.StatusCreated, l.createSilence)
	route("DELETE "+Path+"/silences/{guid}", http.StatusNoContent, l.deleteSilence)
	m.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refusal.Write(w, http.StatusNotFound, 10000, "CF-NotFound", "Unknown request")
	})
	return m
}

// answer writes the value, or the error in Cloud Controller's form.
func (l *Loop) answer(w http.ResponseWriter, r *http.Request, status int, v any, err error) {
	switch e, known := errors.AsType[*cf.Error](err); {
	case err == nil && status == http.StatusNoContent:
		w.WriteHeader(status)
	case err == nil:
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v) // the client may be gone
	case known && e.Kind == cf.ResourceNotFound:
		refusal.Write(w, http.StatusNotFound, 10010, "CF-ResourceNotFound", e.Detail)
	case known && e.Kind == cf.MessageParseError:
		refusal.Write(w, http.StatusBadRequest, 1001, "CF-MessageParseError", e.Detail)
	case known && e.Kind == cf.UnableToPerform:
		refusal.Write(w, http.StatusBadGateway, 10009, "CF-UnableToPerform", e.Detail)
	case known && e.Kind == cf.UnprocessableEntity:
		refusal.Write(w, http.StatusUnprocessableEntity, 10008, "CF-UnprocessableEntity", e.Detail)
	default:
		if r.Context().Err() == nil {
			l.Log.ErrorContext(r.Context(), "a request for alerts failed", "path", r.URL.Path, "err", err)
		}
		refusal.Write(w, http.StatusInternalServerError, 10001, "UnknownError", "The request failed: the daemon's log says why")
	}
}

// decode reads a request's body, strictly.
func decode[T any](r *http.Request) (in T, err error) {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return in, cf.Errorf(cf.MessageParseError, "Request invalid due to parse error: %v", err)
	}
	return in, nil
}

// listOf is a list as the API shows lists.
type listOf[T any] struct {
	Resources []T `json:"resources"`
}

// AlertView is an alert as the API shows it.
type AlertView struct {
	GUID       string           `json:"guid"`
	Rule       string           `json:"rule"`
	Severity   cf.AlertSeverity `json:"severity"`
	State      cf.AlertState    `json:"state"`
	Subject    string           `json:"subject"`
	Text       string           `json:"text"`
	Mend       string           `json:"mend"`
	Since      time.Time        `json:"since"`
	FiredAt    *time.Time       `json:"fired_at"`
	ResolvedAt *time.Time       `json:"resolved_at"`
	Silenced   bool             `json:"silenced"`
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// maxRecent is how many alerts that are over are listed.
const maxRecent = 50

func (l *Loop) list(r *http.Request) (any, error) {
	all := listOf[AlertView]{Resources: []AlertView{}}
	err := l.Store.Read(r.Context(), func(tx *store.Tx) error {
		rows, err := store.Alerts.Open(tx)
		if err != nil {
			return err
		}
		slices.SortStableFunc(rows, byUrgency)
		recent, err := store.Alerts.Some(tx, store.Query{Where: map[string][]string{"states": {string(cf.AlertResolved)}}, Order: "resolved_at", Desc: true}, maxRecent)
		if err != nil {
			return err
		}
		w := World{Now: tx.Now}
		if w.Silences, err = store.AlertSilences.All(tx); err != nil {
			return err
		}
		for _, a := range append(rows, recent...) {
			all.Resources = append(all.Resources, AlertView{a.GUID, a.Rule, a.Severity, a.State, clean(a.Name, maxName), clean(a.Text, 4*maxText), clean(a.Mend, maxText),
				a.CreatedAt.UTC(), optional(a.FiredAt), optional(a.ResolvedAt), a.State != cf.AlertResolved && w.silenced(a)})
		}
		return nil
	})
	return all, err
}

// byUrgency sorts firing alerts first, the most severe of them at the top.
func byUrgency(a, b *cf.Alert) int {
	rank := func(a *cf.Alert) int {
		n := slices.Index([]cf.AlertSeverity{cf.AlertCritical, cf.AlertWarning, cf.AlertInfo}, a.Severity)
		if a.State != cf.AlertFiring {
			n += 10
		}
		return n
	}
	return rank(a) - rank(b)
}

// RuleView is a rule as the API shows it.
type RuleView struct {
	Name      string           `json:"name"`
	Help      string           `json:"help"`
	Severity  cf.AlertSeverity `json:"severity"`
	Enabled   bool             `json:"enabled"`
	For       string           `json:"for"`
	Threshold *float64         `json:"threshold"` // null: the rule has none
	Unit      string           `json:"unit"`
}

func viewRule(r Rule) RuleView {
	v := RuleView{r.Name, r.Help, r.Severity, r.Enabled, r.For.String(), nil, r.Unit}
	if r.Unit != "" {
		v.Threshold = &r.Threshold
	}
	return v
}

func (l *Loop) listRules(r *http.Request) (any, error) {
	all := listOf[RuleView]{}
	err := l.Store.Read(r.Context(), func(tx *store.Tx) error {
		rules, err := Rules(tx)
		for _, r := range rules {
			all.Resources = append(all.Resources, viewRule(r))
		}
		return err
	})
	return all, err
}

func (l *Loop) changeRule(r *http.Request) (any, error) {
	in, err := decode[Setting](r)
	if err != nil {
		return nil, err
	}
	var rule Rule
	err = l.Store.Write(r.Context(), func(tx *store.Tx) (err error) { rule, err = Change(tx, r.PathValue("name"), in); return err })
	return viewRule(rule), err
}
