package alerts

import (
	"net/http"
	"time"

	"cupola/runtime/guid"
	"cupola/store"
	"cupola/store/cf"
)

// TargetView is a target as the API shows it, without what is secret.
type TargetView struct {
	GUID         string     `json:"guid"`
	Name         string     `json:"name"`
	Kind         string     `json:"kind"`
	Form         string     `json:"form"`
	Where        string     `json:"where"`
	SentAt       *time.Time `json:"sent_at"`
	FailingSince *time.Time `json:"failing_since"`
	Failure      string     `json:"failure"`
	RetryAt      *time.Time `json:"retry_at"` // null: nothing failed
	Waiting      int        `json:"waiting"`  // events
}

func viewTarget(tx *store.Tx, t *cf.AlertTarget) (v TargetView, err error) {
	v = TargetView{GUID: t.GUID, Name: t.Name, Kind: t.Kind, Form: t.Settings.Form, Where: where(t), SentAt: optional(t.SentAt), FailingSince: optional(t.FailingSince), Failure: t.Failure}
	if v.FailingSince != nil {
		v.RetryAt = optional(t.TryAt)
	}
	v.Waiting, err = store.AlertNotices.Count(tx, store.Query{Where: map[string][]string{"target_guids": {t.GUID}}})
	return v, err
}

func (l *Loop) listTargets(r *http.Request) (any, error) {
	all := listOf[TargetView]{Resources: []TargetView{}}
	err := l.Store.Read(r.Context(), func(tx *store.Tx) error {
		targets, err := store.AlertTargets.All(tx)
		for _, t := range targets {
			v, err := viewTarget(tx, t)
			if err != nil {
				return err
			}
			all.Resources = append(all.Resources, v)
		}
		return err
	})
	return all, err
}

func (l *Loop) createTarget(r *http.Request) (any, error) {
	in, err := decode[TargetRequest](r)
	if err != nil {
		return nil, err
	}
	var v TargetView
	err = l.Store.Write(r.Context(), func(tx *store.Tx) error {
		t, err := addTarget(tx, in)
		if err != nil {
			return err
		}
		v, err = viewTarget(tx, t)
		return err
	})
	return v, err
}

func (l *Loop) deleteTarget(r *http.Request) (any, error) {
	return nil, l.Store.Write(r.Context(), func(tx *store.Tx) error {
		t, err := findTarget(tx, r.PathValue("name"))
		if err != nil {
			return err
		}
		if t.Name == CommandTarget {
			return invalid("the target %q is of the configuration: start the daemon without --alert-command", t.Name)
		}
		return store.AlertTargets.Delete(tx, t.GUID)
	})
}

// testTarget sends one message now, and says what became of it.
func (l *Loop) testTarget(r *http.Request) (any, error) {
	var t *cf.AlertTarget
	if err := l.Store.Read(r.Context(), func(tx *store.Tx) (err error) { t, err = findTarget(tx, r.PathValue("name")); return err }); err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	event := cf.AlertEvent{ID: guid.New(), Kind: cf.AlertEventTest, Severity: cf.AlertInfo, Name: t.Name, Text: "This is a test. The target works.", Since: now, At: now}
	_, failure := l.post(r.Context(), t, []cf.AlertEvent{event})
	if failure != nil {
		return nil, cf.Errorf(cf.UnableToPerform, "the target %q took no message: %s", t.Name, clean(failure.Error(), maxText))
	}
	// What waits for the target is sent at once, now that it works.
	err := l.Store.Write(r.Context(), func(tx *store.Tx) error {
		t, err := findTarget(tx, t.Name)
		if err != nil {
			return err
		}
		works(t, tx.Now)
		t.TryAt = tx.Now
		return store.AlertTargets.Update(tx, t)
	})
	return map[string]string{"sent_to": where(t)}, err
}
