package reconcile

import (
	"cmp"
	"slices"

	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store"
)

// Source derives desired LRPs and work from rows that the loop does not know. They
// are in domains that are lrp.Derived.
type Source struct {
	// Desired is what it wants to run. What owners of unknown, by their GUIDs, want
	// it cannot say: their containers keep running, so that one damaged row stops
	// nothing else.
	Desired func(*store.Tx) (all []lrp.Desired, unknown []string, err error)
	// Work is what it wants to run once, each in a domain that Owns accepts. Ended
	// gets its result, in the transaction that deletes the task. All three are
	// nil where it wants nothing.
	Work  func(*store.Tx) ([]Work, error)
	Owns  func(domain string) bool
	Ended func(tx *store.Tx, guid string, end Ending) error
}

// Ending is how work of a Source ended.
type Ending struct {
	Result []byte
	Reason string // of a bad end; "" of a good one
	// Lost is set if how it ended is unknown, since no daemon ran then, or if it was
	// lost with its cell.
	Lost bool
}

// source is that of a domain's work; nil where none is.
func (l *Loop) source(domain string) *Source {
	for n := range l.sources {
		if s := &l.sources[n]; s.Owns != nil && s.Owns(domain) {
			return s
		}
	}
	return nil
}

// loadSources derives what neither apps nor the BBS desire.
func (l *loader) loadSources() error {
	for _, s := range l.sources {
		list, unknown, err := s.Desired(l.tx)
		if err != nil {
			return err
		}
		l.world.Desired = append(l.world.Desired, list...)
		l.keep(unknown)
		if s.Work == nil {
			continue
		}
		work, err := s.Work(l.tx)
		if err != nil {
			return err
		}
		l.world.Work = append(l.world.Work, work...)
	}
	return nil
}

// keep lets what runs for the owners go on: for owners by their GUIDs, processes of
// Cloud Foundry and of the BBS by theirs, and work by its own.
func (l *loader) keep(owners []string) {
	if len(owners) == 0 {
		return
	}
	if l.world.Kept == nil {
		l.world.Kept = map[string]bool{}
	}
	for _, a := range l.world.Actuals {
		of := cmp.Or(a.Owner.GUID, a.ProcessGUID)
		if a.Domain == lrp.DomainApps {
			of = desire.CFProcess(a.ProcessGUID)
		}
		if slices.Contains(owners, of) {
			l.world.Kept[a.ProcessGUID] = true
		}
	}
	for _, t := range l.world.Tasks {
		if slices.Contains(owners, t.GUID) {
			l.world.Kept[t.GUID] = true
		}
	}
}

// ended is how a task ended, in one text; "" is well.
func (o outcome) ended() string {
	switch {
	case !o.failed && o.fault == "":
		return ""
	case o.reason+o.fault == "":
		return "failed"
	}
	return o.reason + o.fault
}
