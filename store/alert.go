package store

import "cupola/store/cf"

// Alerts are what is wrong, and what was.
var Alerts = alerts{&Table[cf.Alert]{table{
	name: "alerts", singular: "Alert",
	columns: "guid, created_at, updated_at, rule, subject, name, severity, text, mend, state, fired_at, resolved_at, absent_since, announced, repeats, repeat_at",
	fields: fieldsOf(func(v *cf.Alert, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.Rule, &v.Subject, &v.Name, &v.Severity, &v.Text, &v.Mend, &v.State,
			timeColumn{&v.FiredAt}, timeColumn{&v.ResolvedAt}, timeColumn{&v.AbsentSince}, &v.Announced, &v.Repeats, timeColumn{&v.RepeatAt}}
	}),
	resource: resourceOf(func(v *cf.Alert) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid", "states": "state", "rules": "rule"},
	orders:   map[string]string{"resolved_at": "resolved_at"},
}}}

type alerts struct{ *Table[cf.Alert] }

// Open returns the alerts that are not over.
func (t alerts) Open(tx *Tx) ([]*cf.Alert, error) {
	return t.By(tx, "states", string(cf.AlertPending), string(cf.AlertFiring))
}

// Firing counts the alerts that fire, by rule.
func (t alerts) Firing(tx *Tx) (map[string]int, error) {
	all, err := t.By(tx, "states", string(cf.AlertFiring))
	n := map[string]int{}
	for _, a := range all {
		n[a.Rule]++
	}
	return n, err
}

// AlertTargets are where alerts are sent.
var AlertTargets = &Table[cf.AlertTarget]{table{
	name: "alert_targets", singular: "Alert target",
	columns: "guid, created_at, updated_at, name, kind, settings, sent_at, failing_since, failure, tries, try_at",
	fields: fieldsOf(func(v *cf.AlertTarget, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.Name, &v.Kind, sealedColumn{k, &v.Settings},
			timeColumn{&v.SentAt}, timeColumn{&v.FailingSince}, &v.Failure, &v.Tries, timeColumn{&v.TryAt}}
	}),
	resource: resourceOf(func(v *cf.AlertTarget) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid", "names": "name"},
	orders:   map[string]string{"name": "name"},
}}

// AlertNotices are what targets have not taken yet. They end with their target.
var AlertNotices = alertNotices{&Table[cf.AlertNotice]{table{
	name: "alert_notices", singular: "Alert notice",
	columns: "guid, created_at, updated_at, target_guid, notice",
	fields: fieldsOf(func(v *cf.AlertNotice, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.TargetGUID, jsonColumn{&v.Event}}
	}),
	resource: resourceOf(func(v *cf.AlertNotice) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid", "target_guids": "target_guid"},
}}}

type alertNotices struct{ *Table[cf.AlertNotice] }

// DropBeyond deletes the oldest notices of a target of which there are more than most.
func (t alertNotices) DropBeyond(tx *Tx, target string, most int) error {
	_, err := tx.exec("DELETE FROM alert_notices WHERE target_guid = ? AND id <= (SELECT id FROM alert_notices WHERE target_guid = ? ORDER BY id DESC LIMIT 1 OFFSET ?)", target, target, most)
	return err
}

// AlertSilences keep alerts from being sent.
var AlertSilences = &Table[cf.AlertSilence]{table{
	name: "alert_silences", singular: "Silence",
	columns: "guid, created_at, updated_at, rule, name, comment, ends_at",
	fields: fieldsOf(func(v *cf.AlertSilence, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.Rule, &v.Name, &v.Comment, timeColumn{&v.EndsAt}}
	}),
	resource: resourceOf(func(v *cf.AlertSilence) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid"},
}}
