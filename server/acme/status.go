package acme

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"cupola/runtime/durable"
)

// StatusFile is the name, in a data directory, of the file that says what failed.
const StatusFile = "acme.json"

// Failure is why a name has no certificate, or an old one.
type Failure struct {
	Name  string    `json:"name"`
	Error string    `json:"error"`
	At    time.Time `json:"at"`
	Until time.Time `json:"until,omitzero"` // of the certificate that there is
}

// Status counts names, for metrics.
type Status struct {
	Valid, Missing int   // names with a certificate, and without
	Failing        int   // names whose last attempt failed
	Failed         int64 // attempts that failed since the start
	FirstEnd       time.Time
}

// Status returns what there is now.
func (m *Manager) Status() (s Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Failed = m.failed
	for name, n := range m.names {
		if n.failure != "" {
			s.Failing++
		}
		c := m.Issued(name)
		if c == nil {
			s.Missing++
			continue
		}
		s.Valid++
		if s.FirstEnd.IsZero() || c.Leaf.NotAfter.Before(s.FirstEnd) {
			s.FirstEnd = c.Leaf.NotAfter
		}
	}
	return s
}

// writeStatus writes what fails, for doctor.
func (m *Manager) writeStatus() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := []Failure{}
	for _, name := range slices.Sorted(maps.Keys(m.names)) {
		n := m.names[name]
		if n.failure == "" {
			continue
		}
		f := Failure{Name: name, Error: n.failure, At: n.at.UTC()}
		if c := m.Issued(name); c != nil {
			f.Until = c.Leaf.NotAfter
		}
		all = append(all, f)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return durable.Ensure(m.StatusFile, append(text, '\n'), 0o644)
}

// ReadFailures reads what failed, by the last daemon of a data directory.
func ReadFailures(file string) (all []Failure, err error) {
	err = durable.ReadJSON(file, &all)
	return all, err
}
