package autoscaling

import (
	"cmp"
	"crypto/subtle"
	"crypto/x509"
	"encoding/json"

	"cupola/runtime/identity"
	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// Submission is what an app says of itself: custom metrics of one of its instances (App Autoscaler:
// models/custom_metrics.go).
type Submission struct {
	InstanceIndex uint32         `json:"instance_index"`
	Metrics       []CustomMetric `json:"metrics"`
}

// CustomMetric is a metric's value.
type CustomMetric struct {
	Name  Metric  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// The bounds of a submission: a policy has no more metrics, and shows no longer units.
const (
	maxSubmitted = maxParts
	maxUnit      = 20
)

// ParseSubmission reads a submission. Its error is a cf.Error in App Autoscaler's words.
func ParseSubmission(text []byte) (m Submission, err error) {
	if json.Unmarshal(text, &m) != nil {
		return m, cf.Errorf(cf.BadRequest, "Error unmarshaling custom metrics request body")
	}
	if len(m.Metrics) == 0 {
		return m, cf.Errorf(cf.BadRequest, "Error parsing request body")
	}
	if len(m.Metrics) > maxSubmitted {
		return m, cf.Errorf(cf.BadRequest, "%d metrics were submitted at once: %d are allowed", len(m.Metrics), maxSubmitted)
	}
	for n := range m.Metrics {
		if unit := []rune(m.Metrics[n].Unit); len(unit) > maxUnit {
			m.Metrics[n].Unit = string(unit[:maxUnit])
		}
	}
	return m, nil
}

// Accept checks a submission by an app's policy, and leaves the metrics that its rules look at.
func Accept(tx *store.Tx, appGUID string, m Submission) (Submission, error) {
	row, err := policyRow(tx, appGUID)
	if err := control.IfFound(err); err != nil {
		return m, err
	}
	if row == nil {
		return m, cf.Errorf(cf.BadRequest, "no policy defined")
	}
	p, err := stored(row.Policy)
	if err != nil {
		return m, err
	}
	var kept []CustomMetric
	for _, one := range m.Metrics {
		switch known := p.looksAt(one.Name); {
		case !one.Name.custom():
			return m, cf.Errorf(cf.BadRequest, "Custom Metric: %s matches with standard metrics name", one.Name)
		case !known && !p.allowsBound():
			return m, cf.Errorf(cf.BadRequest, "Custom Metric: %s does not match with metrics defined in policy", one.Name)
		case known:
			kept = append(kept, one)
		}
	}
	m.Metrics = kept
	return m, nil
}

func (p *Policy) looksAt(of Metric) bool {
	for _, r := range p.Rules {
		if r.Metric == of {
			return true
		}
	}
	return false
}

// Submit adds what was accepted of an app.
func (l *Loop) Submit(appGUID string, m Submission) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.submitted[appGUID]
	if of == nil {
		of = map[Metric]tally{}
		l.submitted[appGUID] = of
	}
	for _, one := range m.Metrics {
		t := of[one.Name]
		of[one.Name] = tally{t.sum + one.Value, t.count + 1, cmp.Or(one.Unit, t.unit)}
	}
}

// Submitter is who submits metrics.
type Submitter struct {
	Certificate        *x509.Certificate // of an app's instance, verified; nil for none
	Username, Password string            // of a binding
}

// errUnauthorized and errForbidden have App Autoscaler's words.
var (
	errUnauthorized = cf.Errorf(cf.NotAuthenticated, "Unauthorized")
	errForbidden    = cf.Errorf(cf.NotAuthorized, "Unauthorized")
)

// CheckSubmitter refuses who may not submit metrics of an app. An app may submit its own, by its
// certificate or its binding's credentials; others by their certificates, if they are bound to the
// same service instance and the app's policy allows it.
func CheckSubmitter(tx *store.Tx, appGUID string, by Submitter) error {
	if by.Certificate == nil {
		return checkPassword(tx, appGUID, by)
	}
	from := identity.OwnerOf(by.Certificate).AppGUID
	if from == appGUID {
		return nil
	}
	row, err := policyRow(tx, appGUID)
	if err := control.IfFound(err); err != nil {
		return err
	}
	if row == nil {
		return errForbidden
	}
	if p, err := stored(row.Policy); err != nil || !p.allowsBound() {
		return cmp.Or(err, error(errForbidden))
	}
	return checkBound(tx, appGUID, from)
}

func checkPassword(tx *store.Tx, appGUID string, by Submitter) error {
	b, err := livingBindingOf(tx, appGUID)
	if err != nil {
		return err
	}
	if b == nil || by.Username != b.GUID || b.Password == "" || subtle.ConstantTimeCompare([]byte(by.Password), []byte(b.Password)) != 1 {
		return errUnauthorized
	}
	return nil
}

// checkBound refuses an app that is not bound to the service instance of another one.
func checkBound(tx *store.Tx, appGUID, by string) error {
	of, err := livingBindingOf(tx, appGUID)
	if err != nil {
		return err
	}
	b, err := livingBindingOf(tx, by)
	if err != nil {
		return err
	}
	if of == nil || b == nil || of.InstanceGUID != b.InstanceGUID {
		return errUnauthorized
	}
	return nil
}

// livingBindingOf is BindingOf, without a binding to an instance that was purged: the broker was not asked to unbind.
func livingBindingOf(tx *store.Tx, appGUID string) (*cf.ScalingBinding, error) {
	b, err := BindingOf(tx, appGUID)
	if err != nil || b == nil {
		return nil, err
	}
	i, err := store.ServiceInstances.Find(tx, b.InstanceGUID)
	if err != nil || i == nil {
		return nil, err
	}
	return b, nil
}

// BindingOf is the binding of an app to the autoscaler's service; nil if it has none.
func BindingOf(tx *store.Tx, appGUID string) (*cf.ScalingBinding, error) {
	b, err := store.ScalingBindings.First(tx, store.Query{Where: map[string][]string{"app_guids": {appGUID}}})
	if store.IsNotFound(err) {
		return nil, nil
	}
	return b, err
}
