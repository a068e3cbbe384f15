package manifest

// Lint tells all that is wrong with a manifest beyond what Parse found, the
// worst first.
func Lint(m *Manifest, o Options) Findings {
	l := &linter{m: m, o: o}
	l.keys()
	found := l.found.Graded(o)
	found.Sort()
	return found
}

// linter gathers what is wrong with a manifest.
type linter struct {
	m     *Manifest
	o     Options
	found Findings
}

// keys tells of the keys that are set and have no effect, or must not be set.
func (l *linter) keys() {
	for _, s := range l.m.set {
		k, ok := keyOf(s.key)
		switch {
		case !ok, k.When != "" && s.value != k.When:
		case k.Use == Refused && (k.When != "" || !s.empty):
			l.found.add(Finding{Level: Error, Path: s.Path, Line: s.Line, What: "not supported", Mend: k.Text, soft: true})
		case k.Use == Warned && (l.o.Strict || !s.empty):
			text := k.Text
			if text == "" {
				text = "not used"
			}
			l.found.warnf(s.At, "%s", text)
		}
	}
}
