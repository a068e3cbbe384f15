package alerts

import (
	"net/http"
	"slices"
	"time"

	"cupola/store"
	"cupola/store/cf"
)

// SilenceRequest asks for a silence.
type SilenceRequest struct {
	Rule    string `json:"rule,omitempty"`
	Subject string `json:"subject,omitempty"` // all of it, or its beginning up to a slash
	For     string `json:"for"`               // like 2h
	Comment string `json:"comment,omitempty"`
}

// SilenceView is a silence as the API shows it.
type SilenceView struct {
	GUID    string    `json:"guid"`
	Rule    string    `json:"rule"`
	Subject string    `json:"subject"`
	Comment string    `json:"comment"`
	EndsAt  time.Time `json:"ends_at"`
}

func viewSilence(s *cf.AlertSilence) SilenceView {
	return SilenceView{s.GUID, s.Rule, s.Name, s.Comment, s.EndsAt.UTC()}
}

// Bounds of silences.
const (
	maxSilences = 200
	longest     = 366 * 24 * time.Hour
)

func (in SilenceRequest) silence(now time.Time) (*cf.AlertSilence, error) {
	d, err := time.ParseDuration(in.For)
	if err != nil || d <= 0 || d > longest {
		return nil, invalid("for must be a time up to 8784h, like 2h, not %q", in.For)
	}
	known := slices.ContainsFunc(Defaults(), func(r Rule) bool { return r.Name == in.Rule })
	if in.Rule != "" && !known {
		return nil, unknownRule(in.Rule)
	}
	if len(in.Subject) > maxName || len(in.Comment) > maxText {
		return nil, invalid("invalid subject or comment: give at most %d and %d bytes", maxName, maxText)
	}
	return &cf.AlertSilence{Rule: in.Rule, Name: in.Subject, Comment: clean(in.Comment, maxText), EndsAt: now.Add(d)}, nil
}

func (l *Loop) listSilences(r *http.Request) (any, error) {
	all := listOf[SilenceView]{Resources: []SilenceView{}}
	err := l.Store.Read(r.Context(), func(tx *store.Tx) error {
		rows, err := store.AlertSilences.All(tx)
		for _, s := range rows {
			if tx.Now.Before(s.EndsAt) {
				all.Resources = append(all.Resources, viewSilence(s))
			}
		}
		return err
	})
	return all, err
}

func (l *Loop) createSilence(r *http.Request) (any, error) {
	in, err := decode[SilenceRequest](r)
	if err != nil {
		return nil, err
	}
	var made *cf.AlertSilence
	err = l.Store.Write(r.Context(), func(tx *store.Tx) error {
		if made, err = in.silence(tx.Now); err != nil {
			return err
		}
		switch n, err := store.AlertSilences.Count(tx, store.Query{}); {
		case err != nil:
			return err
		case n >= maxSilences:
			return invalid("there are %d silences: delete one first", n)
		}
		return store.AlertSilences.Insert(tx, made)
	})
	if err != nil {
		return nil, err
	}
	return viewSilence(made), nil
}

func (l *Loop) deleteSilence(r *http.Request) (any, error) {
	return nil, l.Store.Write(r.Context(), func(tx *store.Tx) error {
		s, err := store.AlertSilences.Get(tx, r.PathValue("guid"))
		if err != nil {
			return err
		}
		return store.AlertSilences.Delete(tx, s.GUID)
	})
}
